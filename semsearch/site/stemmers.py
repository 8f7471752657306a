"""The stemmers of a site: the JavaScript that Snowball's own compiler makes of the algorithms that PyStemmer has.

The folder snowball/ has a file for each language, made of Snowball 3.1.1 as follows, here for German. A test compares
each with PyStemmer, so that a query has the stems of the index. No package of npm has Snowball 3: the stems of
@orama/stemmers 3.1.18 differ for one in twenty German words.

    git clone --branch v3.1.1 https://github.com/snowballstem/snowball && make -C snowball js
    npx esbuild@0.28.2 snowball/js_out/german-stemmer.js --bundle --minify --charset=utf8 --format=iife \\
        --global-name=german --outfile=semsearch/site/snowball/german.js
"""

from collections.abc import Sequence
from pathlib import Path

SNOWBALL = Path(__file__).with_name("snowball")
STEM_BY = "const stemBy = (stemmer) => (word) => stemmer.stem(word);\n"


def stemmers_module(languages: Sequence[str | None]) -> str:
    """Return a JavaScript module with `stemmers`: a function for each language, null for None, in this order.

    The module begins with the licence of the stemmers.
    """
    names = [name for name in languages if name is not None]
    parts = [(SNOWBALL / f"{name}.js").read_text(encoding="utf-8") for name in ["notice", *names] if names]
    made = ["null" if name is None else f"stemBy(new {name}.default())" for name in languages]
    return "".join([*parts, STEM_BY, f"export const stemmers = [{', '.join(made)}];\n"])
