"""Bundles whose tokenizer is a WordPiece, and sites of them. `make test-site` installs the packages from npm."""

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.vectors.indexer import KEYWORDS_BY_DEFAULT, NO_OPTIONS
from tests.project import ROOT
from tests.world import SPECIAL_TOKENS, WHAT, WHO, add_table, write_bundle

PACKAGES = ROOT / "build" / "site-tools"
ANSWER = Path(__file__).parent / "answer.mjs"
LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789éß東京🦆.,!?-'"


def packages_problem() -> str | None:
    """Return why no site can be made and run on this machine; None if one can."""
    if shutil.which("node") is None:
        return "Node.js is not installed; on Debian, `apt-get install nodejs npm` installs it"
    if not (PACKAGES / "node_modules").is_dir():
        return f"{PACKAGES}: the packages from npm are not there; run `make test-site`, which installs them"
    return None


def make_wordpiece() -> Tokenizer:
    """Return a WordPiece tokenizer in the way of BERT that knows the stories' words, letters and some endings."""
    words = {word.lower() for text in [*WHO, *WHAT] for word in text.split()}
    pieces = [*sorted(words), *LETTERS, *(f"##{letter}" for letter in LETTERS), "##ing", "##ed", "##s"]
    vocabulary = {word: number for number, word in enumerate(dict.fromkeys([*SPECIAL_TOKENS, *pieces]))}
    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]", max_input_chars_per_word=20))
    tokenizer.normalizer = BertNormalizer()
    tokenizer.pre_tokenizer = BertPreTokenizer()
    special = [(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=special)
    tokenizer.add_special_tokens([AddedToken(token, normalized=False) for token in SPECIAL_TOKENS])
    return tokenizer


def write_site_bundle(
    folder: Path,
    corpus: Corpus,
    keywords: KeywordOptions | None = KEYWORDS_BY_DEFAULT,
    options: Mapping[str, Any] = NO_OPTIONS,
) -> Path:
    """Write a bundle that a browser can search, with a query table."""
    return add_table(write_bundle(folder, corpus, keywords, make_wordpiece(), options))


def answers(site: Path, questions: Sequence[tuple[str, object]]) -> list[Any]:
    """Return what the site's own code answers to questions in Node.js; answer.mjs says what can be asked."""
    done = subprocess.run(
        ["node", str(ANSWER), str(site)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [each["answer"] for each in json.loads(done.stdout)]
