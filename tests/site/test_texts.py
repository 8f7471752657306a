"""The texts of the box in all its languages, in Node.js."""

import json
import re
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
    script = f"""const {{ texts, textsFor, loadTexts, megabytes }} = await import({address});
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
        ["Quitter", "Effacer", "Plus de résultats sur cette page", "fr"],
    ]


@pytest.mark.parametrize(
    ("name", "locale", "close"),
    [
        ("de", "de", "Schließen"),
        ("de-AT", "de-AT", "Schließen"),
        ("de_AT", "de-AT", "Schließen"),
        ("DE_at", "de-AT", "Schließen"),
        ("pt_BR", "pt-BR", "Fechar"),
        ("zh_Hans_CN", "zh-Hans-CN", "关闭"),
        ("xx", "xx", "Close"),
        ("German", "german", "Close"),
        ("not a language", "en", "Close"),
        ("_", "en", "Close"),
    ],
)
def test_a_name_of_a_language_has_its_texts_and_a_locale_that_the_browser_knows(
    name: str, locale: str, close: str
) -> None:
    found = run(f"""
        await loadTexts({json.dumps(name)}, load);
        const {{ close, locale }} = textsFor({json.dumps(name)});
        new Intl.DisplayNames([locale], {{ type: "language" }});
        return [locale, close];
    """)
    assert found == [locale, close]


@pytest.mark.parametrize(
    ("scope", "locale", "described"),
    [
        ({"language": "de"}, "de", "Deutsch"),
        ({"language": "de_AT"}, "de", "Österreichisches Deutsch"),
        ({"language": "fr"}, "fr", "français"),
        ({"language": "not a language"}, "fr", "not a language"),
        ({"version": "2.0", "language": "en"}, "fr", "version 2.0, anglais"),
        ({"version": "2.0"}, "de", "version 2.0"),
    ],
)
def test_a_scope_is_described_in_the_language_of_the_page(scope: dict[str, str], locale: str, described: str) -> None:
    address = json.dumps((BROWSER / "scope.js").as_uri())
    values = json.dumps([scope, "version {}", locale])
    assert run(f"return (await import({address})).describeScope(...{values})") == described


@pytest.mark.parametrize(
    ("locale", "shown"),
    [
        ("en", ["0.0", "3.4", "12.0"]),
        ("de", ["0,0", "3,4", "12,0"]),
        ("fr-CA", ["0,0", "3,4", "12,0"]),
        ("zh", ["0.0", "3.4", "12.0"]),
    ],
)
def test_megabytes_have_one_decimal_as_the_language_writes_it(locale: str, shown: list[str]) -> None:
    assert run(f"return [0, 3_400_000, 12_000_000].map((bytes) => megabytes(bytes, {json.dumps(locale)}))") == shown


def test_no_line_of_the_french_texts_begins_or_ends_with_the_wrong_mark() -> None:
    texts = run("await loadTexts('fr', load); return textsFor('fr')")
    marks = {name: found for name, text in texts.items() if (found := re.findall("[«»:;!?]", text))}
    assert {"found", "nothing", "corrected"} < marks.keys()
    divided = {name: text for name, text in texts.items() if re.search(r"(?<!\u00a0)[»:;!?]|«(?!\u00a0)", text)}
    assert divided == {}


def test_texts_that_cannot_be_loaded_are_english_and_loaded_the_next_time() -> None:
    found = run("""
        await loadTexts("fr", () => Promise.reject(new Error("gone")));
        const first = textsFor("fr").close;
        await loadTexts("fr", load);
        return [first, textsFor("fr").close];
    """)
    assert found == ["Close", "Fermer"]
