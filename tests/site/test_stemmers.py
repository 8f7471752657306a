"""The stemmers of a site and those of PyStemmer, which stem the words of an index, are equal. Needs Node.js alone."""

import json
import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from Stemmer import algorithms

from semsearch.engine.keyword.analyzer import find_stemmer
from semsearch.site.stemmers import SNOWBALL, stemmers_module

WORDS_OF_EACH = 2_000
STRING = re.compile(r'"([^"\\\\]*)"')  # in a stemmer: an ending, or a part of a word that decides
STEM = (
    "for (const word of words) process.stdout.write(`${stemmers.map((stem) => (stem ?? String)(word)).join(' ')}\\n`);"
)


def words_of(language: str) -> list[str]:
    """Return words that end as the rules of a language expect, seeded; they are of no text."""
    generator = random.Random(language)
    source = (SNOWBALL / f"{language}.js").read_text(encoding="utf-8")
    endings = sorted({part for part in STRING.findall(source) if part.isalpha()})
    letters = "".join(endings)
    return [
        "".join([*generator.choices(letters, k=generator.randint(0, 6)), *generator.choices(endings, k=count)])
        for count in (1, 2)
        for _ in range(WORDS_OF_EACH // 2)
    ]


def stems(languages: list[str | None], words: list[str], folder: Path) -> list[list[str]]:
    """Return the stem of each word in each language, by the module of a site in Node.js."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; on Debian, `apt-get install nodejs` installs it")
    module = folder / "stems.mjs"
    module.write_text(f"{stemmers_module(languages)}const words = {json.dumps(words)};\n{STEM}", encoding="utf-8")
    done = subprocess.run(["node", module], capture_output=True, text=True, check=True)
    return [line.split(" ") for line in done.stdout.splitlines()]


@pytest.mark.parametrize("language", algorithms())
def test_a_language_has_the_stems_of_pystemmer(language: str, tmp_path: Path) -> None:
    words = words_of(language)
    stem = find_stemmer(language)
    assert stem is not None
    expected = [[stem(word)] for word in words]
    assert sum(word != own[0] for word, own in zip(words, expected, strict=True)) > WORDS_OF_EACH / 10
    found = stems([language], words, tmp_path)
    assert [each for each in zip(words, found, expected, strict=True) if each[1] != each[2]] == []


def test_several_languages_stem_in_their_order_and_a_language_without_stems_keeps_words(tmp_path: Path) -> None:
    found = stems(["german", None, "english"], ["kennungen", "houses"], tmp_path)
    assert found == [["kennung", "kennungen", "kennungen"], ["hous", "houses", "hous"]]


def test_the_module_has_the_whole_licence_only_with_a_stemmer() -> None:
    licence = (SNOWBALL / "LICENSE").read_text(encoding="utf-8")
    assert stemmers_module(["german"]).startswith("/*! ")
    assert f"\n{licence}*/\n" in stemmers_module(["german", "french"])
    assert stemmers_module([None]) == (
        "const stemBy = (stemmer) => (word) => stemmer.stem(word);\nexport const stemmers = [null];\n"
    )
