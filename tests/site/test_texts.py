"""The texts of the box in all its languages, in Node.js."""

import json
import shutil
import subprocess
from typing import Any

import pytest

from semsearch.site.page import BROWSER

LANGUAGES = ["de", "en", "es", "fr", "it", "ja", "nl", "pt", "ru", "zh"]
WITH_VALUES = {
    *("found", "nothing", "unlike", "corrected", "literally", "without", "also", "scope", "version", "forget"),
    *("loading", "load"),
}


def run(code: str) -> Any:
    """Return what the body of a function returns that has the exports of texts.js, and `load`."""
    if shutil.which("node") is None:
        pytest.skip("Node.js is not installed; on Debian, `apt-get install nodejs` installs it")
    address = json.dumps((BROWSER / "texts.js").as_uri())
    script = f"""const {{ texts, textsFor, loadTexts }} = await import({address});
    const load = (name) => import(new URL(name, {address}));
    const answer = async () => {{ {code} }};
    console.log(JSON.stringify(await answer()));"""
    done = subprocess.run(
        ["node", "--input-type=module", "-e", script], capture_output=True, text=True, check=True, encoding="utf-8"
    )
    return json.loads(done.stdout)


def test_each_language_has_every_text_with_its_values() -> None:
    assert sorted(path.stem for path in (BROWSER / "texts").iterdir()) == sorted({*LANGUAGES} - {"en"})
    found = run(f"""
        const found = {{}};
        for (const language of {json.dumps(LANGUAGES)}) {{
          const early = textsFor(language);
          await loadTexts(language, load);
          found[language] = [early, textsFor(language)];
        }}
        return found;
    """)
    english = found["en"][1]
    counts = {name: text.count("{}") for name, text in english.items()}
    assert {name for name, count in counts.items() if count} == WITH_VALUES
    for language, (early, texts) in found.items():
        assert {name: text.count("{}") for name, text in texts.items()} == counts, language
        assert early["search"] == texts["search"], language  # what the button says before the box is loaded
        assert all(text.strip() == text and text for text in texts.values()), language
        if language != "en":
            assert sum(texts[name] == english[name] for name in english) < 3, language


def test_a_text_of_the_owner_comes_before_that_of_the_language_and_english_before_none() -> None:
    found = run("""
        texts.fr.close = "Quitter";
        texts.cs = { ...texts.en, close: "Zavřít" };
        texts.en.more = "More";
        for (const locale of ["fr-CA", "cs", "xx", "en", "FR"]) await loadTexts(locale, load);
        return ["fr-CA", "cs", "xx", "FR"].map((locale) => textsFor(locale)).map((each) =>
          ["close", "clear", "more", "locale"].map((name) => each[name]));
    """)
    assert found == [
        ["Quitter", "Effacer", "Plus de résultats sur cette page", "fr-CA"],
        ["Zavřít", "Clear", "More on this page", "cs"],
        ["Close", "Clear", "More", "xx"],
        ["Quitter", "Effacer", "Plus de résultats sur cette page", "FR"],
    ]


def test_texts_that_cannot_be_loaded_are_english_and_loaded_the_next_time() -> None:
    found = run("""
        await loadTexts("fr", () => Promise.reject(new Error("gone")));
        const first = textsFor("fr").close;
        await loadTexts("fr", load);
        return [first, textsFor("fr").close];
    """)
    assert found == ["Close", "Fermer"]
