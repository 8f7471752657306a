"""Texts that are mostly not English are noticed, and English ones of any kind are not taken for such."""

from pathlib import Path

import pytest

from semsearch.indexing.corpus.language import find_other_language, warn_of_language
from tests.command_line import export_texts, run, write_texts

GERMAN = [
    *("Ecksofa mit Schlaffunktion", "Hundebett für große Hunde", "Esstisch aus Eiche, 180 cm", "Sofa grau", "Lampe"),
    *("Bürostuhl höhenverstellbar", "Kissen und Decke im Set", "Regal mit 5 Böden", "Hocker", "Spiegel rund"),
]
OTHERS: dict[str | None, list[str]] = {
    "german": GERMAN,
    "french": ["Canapé d'angle pour le salon", "Table basse avec une tablette", "Lampe de chevet", "Chaise pliante"],
    "spanish": ["Sofá cama para el salón", "Mesa de centro con cajón", "Lámpara de pie", "Silla plegable"],
    "dutch": ["Hoekbank met een slaapfunctie", "De tafel van het jaar", "Stoel voor bij de tafel", "Kast"],
    None: ["Угловой диван для гостиной", "Стол журнальный", "Лампа настольная", "沙发床 带储物功能", "ソファーベッド"],
}
ENGLISH = {
    "headlines in lower case": [
        *("mayor denies knowledge of new stadium plan", "los angeles fires rage on", "two die in crash"),
    ],
    "names of products": [
        *("Café table", "Resistor 10 kΩ", "Capacitor 100 µF", "Van mirror", "Sofa bed", "Lamp", "USB 3.0 hub"),
    ],
    "LaTeX": [r"We show that $\alpha \in \mathcal{L}(V)$ is bounded; see Poincaré.", r"$H_\beta$ of a Gröbner basis"],
    "letters of mathematics": ["Let θ, β and ψ be roots of x² + βx = 0", "The angle θ is at most π"],
    "codes": ["AB-1234", "df.groupby('é')", "0x7fff", "", "🦆"],
    "mostly English": [*GERMAN, *["the sofa with a lamp"] * 9],
}


@pytest.mark.parametrize("name", OTHERS, ids=str)
def test_another_language_is_noticed_and_named_if_its_words_are_known(name: str | None) -> None:
    found = find_other_language(OTHERS[name])
    assert found is not None
    assert found[1] == name


@pytest.mark.parametrize("kind", ENGLISH)
def test_english_texts_are_not_taken_for_another_language(kind: str) -> None:
    assert find_other_language(ENGLISH[kind]) is None


def test_a_large_corpus_is_judged_by_texts_from_all_over_it() -> None:
    assert find_other_language(["the sofa"] * 4_000 + GERMAN * 1_000) is not None
    assert find_other_language(GERMAN * 300 + ["the sofa"] * 4_000) is None


CODES = ["AB-1234"] * 90


@pytest.mark.parametrize(
    ("texts", "found"),
    [
        (["das Haus"] * 2, None),  # too few
        (["das Haus"] * 3, (1.0, "german")),
        (["das Haus", *["the dog"] * 2, *["das Haus"] * 2, "the dog"], None),  # as many as are English
        (["das Haus", *["the dog"] * 3, *["das Haus"] * 3], (4 / 7, "german")),
        (["das Haus"] * 10 + CODES, (0.1, "german")),
        (["das Haus"] * 9 + CODES, None),  # less than a tenth
        (["das the"] * 3, None),  # as many words of English
        (["der das the"] * 3, (1.0, "german")),
        (["the größte"] * 3, None),
        (["Größe"] * 3, (1.0, None)),
        (["Тут"] * 3, (1.0, None)),
        (["Да"] * 3, None),  # two letters can be a unit
        (["das Größe", "das", "Größe", "Größe"], (1.0, "german")),  # a word of German in half of the texts
        (["das Größe", "Größe", "Größe"], (1.0, None)),
    ],
)
def test_texts_are_counted_as_english_or_as_another_language(
    texts: list[str], found: tuple[float, str | None] | None
) -> None:
    assert find_other_language(texts) == found


EXPECTED = "expected English, because "
MULTILINGUAL = "a multilingual MODEL, such as sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


@pytest.mark.parametrize(
    ("texts", "is_default_model", "has_default_stems", "warning"),
    [
        (
            *(GERMAN, True, True),
            f"(50% of a sample, most like German), {EXPECTED}the default model was trained with it and keyword search "
            f"removes its endings; index with {MULTILINGUAL} and --stem german (or --stem none)",
        ),
        (
            *(GERMAN, True, False),
            f"(50% of a sample, most like German), {EXPECTED}the default model was trained with it; index with "
            f"{MULTILINGUAL}",
        ),
        (
            *(["Größe"] * 3, False, True),
            f"(100% of a sample), {EXPECTED}keyword search removes its endings; index with --stem LANGUAGE (or --stem "
            "none)",
        ),
    ],
)
def test_the_default_model_and_the_default_stems_expect_english(
    texts: list[str], is_default_model: bool, has_default_stems: bool, warning: str
) -> None:
    found = warn_of_language(texts, "a.csv", is_default_model, has_default_stems)
    assert found == f"a.csv: found mostly texts in another language {warning}"
    assert warn_of_language(texts, "a.csv", is_default_model=False, has_default_stems=False) is None
    assert warn_of_language(["the goose"], "a.csv", is_default_model=True, has_default_stems=True) is None


def test_an_export_warns_unless_the_stems_were_chosen(bundle_copy: Path, tmp_path: Path) -> None:
    path = write_texts(tmp_path / "shop.csv", GERMAN)
    done = run("index", path, "--out", bundle_copy, "--replace")
    assert done.code == 0
    assert done.err.startswith("warning: shop.csv: found mostly texts in another language (50% of a sample,")
    assert done.err.endswith("index with --stem german (or --stem none)\n")
    for chosen in (["--stem", "english"], ["--no-keywords"]):
        export_texts(path, bundle_copy, *chosen)


@pytest.mark.parametrize(
    ("stated", "named"),
    [
        (["de", "en"], "de"),
        (["de-AT", "en-GB", "fr"], "de-AT, fr"),
        (["en", "en_US", "English"], None),
        (["en"], None),
        ([], None),
    ],
)
def test_pages_in_other_languages_of_a_site_that_is_mostly_english_are_named(
    stated: list[str], named: str | None
) -> None:
    english = ["the sofa"] * 9 + GERMAN[:2]
    warning = warn_of_language(english, "site", is_default_model=True, has_default_stems=False, stated=stated)
    if named is None:
        assert warning is None
    else:
        assert warning is not None
        assert warning.startswith(f"site: found pages in {named}, expected English, because the default model was ")
    assert warn_of_language(english, "site", is_default_model=False, has_default_stems=True, stated=stated) is None
    mostly = warn_of_language(GERMAN, "site", is_default_model=True, has_default_stems=False, stated=stated)
    assert mostly is not None
    assert mostly.startswith("site: found mostly texts in another language")
