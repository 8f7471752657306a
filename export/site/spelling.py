"""What JavaScript spells differently than Python: case folding, and the stems of some words.

Unicode's case folding is not a part of JavaScript. The package porter2 follows an older version of Snowball's English
stemmer than PyStemmer does. Both differences are small, so the site has a table for each of them.
"""

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

from export.site.packages import find_program
from function.engine.keyword.analyzer import find_codes, find_stemmer

STEMS = """
const { stem } = require(process.argv[1]);
const words = JSON.parse(require("fs").readFileSync(0, "utf8"));
process.stdout.write(JSON.stringify(words.map((word) => stem(word))));
"""


def folded_letters() -> dict[str, str]:
    """Return the letters whose case folding is not their lower case, with their case folding."""
    letters = map(chr, range(sys.maxunicode + 1))
    return {letter: letter.casefold() for letter in letters if letter.casefold() != letter.lower()}


def different_stems(texts: Iterable[str], stemmer: Path) -> dict[str, str]:
    """Return the words of the texts for which the stemmer, a JavaScript module, and PyStemmer have different stems.

    Each comes with the stem that PyStemmer returns. Raises PackagesError if Node.js is missing.
    """
    stem = find_stemmer("english")
    assert stem is not None
    found = {word for text in texts for _, words in find_codes(text) for word in words if word.isalpha()}
    words = sorted(found)
    node = [find_program("node"), "-e", STEMS, str(stemmer.resolve())]
    done = subprocess.run(node, input=json.dumps(words), capture_output=True, text=True, check=True)  # noqa: S603
    pairs = zip(words, json.loads(done.stdout), strict=True)
    return {word: expected for word, other in pairs if (expected := stem(word)) != other}
