"""The site's JavaScript and the function answer the same: tokens, terms, embeddings and whole replies."""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bench.work import HEADLINES, read_headlines
from semsearch.engine.bundle import QUERY_TABLE, StagesInfo, check_bundle
from semsearch.engine.embedder import Embedder, QueryTable
from semsearch.engine.keyword.analyzer import find_stemmer, split_terms
from semsearch.engine.metadata.columns import LIST_TYPES
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from semsearch.indexing.make import index
from semsearch.indexing.vectors import indexer
from semsearch.indexing.vectors.floor import measure_floor
from semsearch.indexing.vectors.indexer import KEYWORDS_BY_DEFAULT
from semsearch.site.site import write_site
from tests.browser.site.conftest import Connect, Function, make_site
from tests.browser.site.world import PACKAGES, answers, make_wordpiece, write_site_bundle
from tests.world import STORY_COLUMNS, WHAT, WHO, write_bundle


def random_texts(count: int) -> list[str]:
    """Return short texts of characters from all scripts, seeded; unassigned characters are left out."""
    from unicodedata import category

    generator = random.Random(7)
    known = [chr(code) for code in range(32, 0x3000) if category(chr(code)) not in ("Cn", "Cs", "Co")]
    known += list("東京都日本語가나다ﬁﬀﾊﾟｶﾞ🦆👩𝔘𐐀") * 20 + list(" .,-_/'") * 100 + list("abcdefghij") * 40
    texts = ["".join(generator.choices(known, k=generator.randint(1, 30))) for _ in range(count)]
    marks = [character for character in known if category(character).startswith("M")] + ["\uff9e", "\u0344"] * 9
    long_runs = ["a" + "".join(generator.choices(marks, k=generator.randint(28, 70))) + "b" for _ in range(count // 10)]
    return texts + long_runs


def real_texts() -> list[str]:
    """Return 30,000 headlines where BENCH_DATA names their folder, none elsewhere."""
    folder = Path(os.environ.get("BENCH_DATA", "build/bench/data"))
    return read_headlines(folder, 30_000) if (folder / HEADLINES).is_file() else []


@pytest.fixture(scope="module")
def native(site_bundle: Path) -> Embedder:
    return Embedder.open(site_bundle, check_bundle(site_bundle).model)


def test_the_tokens_of_all_texts_are_those_of_the_library(site: Path, many_scripts: Corpus, native: Embedder) -> None:
    texts = [*many_scripts.texts, *real_texts(), "", "a" * 21, "[SEP] [UNK]x [CLS", "apple " * 40]
    found = answers(site, [("tokens", text) for text in texts])
    expected = [tokens.ids for tokens in native.tokenize(texts)]
    assert [pair for pair in zip(texts, found, expected, strict=True) if pair[1] != pair[2]] == []


def test_the_terms_of_all_texts_are_those_of_the_engine(site: Path, many_scripts: Corpus) -> None:
    texts = [*many_scripts.texts, *random_texts(3_000)]
    stem = find_stemmer("english")
    found = answers(site, [("terms", text) for text in texts])
    expected = [[split_terms(text, stem, is_query=True)] for text in texts]
    assert [pair for pair in zip(texts, found, expected, strict=True) if pair[1] != pair[2]] == []


def test_embeddings_by_the_table_are_those_of_the_function_to_the_last_bit(
    site: Path, site_bundle: Path, many_scripts: Corpus, native: Embedder
) -> None:
    texts = [*many_scripts.texts, *real_texts(), ""]
    found = np.array(answers(site, [("embedding", text) for text in texts]), np.float32)
    table = QueryTable.open(site_bundle / QUERY_TABLE)
    np.testing.assert_array_equal(found, table.embed(native.tokenize(texts)))


def test_embeddings_are_those_of_the_same_graph_run_natively(
    site_bundle: Path, many_scripts: Corpus, native: Embedder, tmp_path: Path
) -> None:
    write_site(site_bundle, tmp_path / "site", packages=PACKAGES, with_model=True)
    texts = many_scripts.texts[:100]
    found = np.array(answers(tmp_path / "site", [("embedding", text) for text in texts]), np.float32)
    expected = native.embed(native.tokenize(texts))
    np.testing.assert_allclose((found * expected).sum(axis=1), 1, atol=1e-6)


# separated by a bar
WORDS = (
    "lost a silver key in the snow|bakker|the angry goose|Zurich|zürich straße|東京|京|ducks 🦆|“ferry” of the year|"
    '"cherry trees" river|paintd the kitchn|c++|ab-1234|Łodz|xyzzy|ไทย|of the|ΟΔΥΣΣΕΥΣ|told the same joke|first prize!|'
    "planed cherrry|İstanbul|हिन्दी|Πδυσσεύς|Łoddź in Zürixh|éailor|organise the joke|baker-y|xailor|sailorz bakers|"
    "emergensies|sil ver key|cherrytrees|goose-ferry|some one@example.com|same_joke|AB1234|CAFÉ()|3km|3 km|"
    "path_to.file#x|oldsailor joke|to.file|e mail|Zürich.|key|--key|ﬁnance Ⅷ|sailorbaker|"
    "wifi|wi fi|a Wi-Fi key|raincoat|rain coat|4K|1234"
)
QUERIES = [
    *WORDS.split("|"),
    *('a "zebra" among sailors ' * 20, "sailor " * 30),
    *("Z" + "\u0301" * count for count in (30, 31, 40)),
    *("e" + "\u0316\u0301" * 20 + "x", "e" + "\u0316\u0301" * 15 + "x", "a" + "\u0301" * 31 + "pple market"),
]
FILTERS: list[dict[str, Any]] = [
    *({"who": "the baker"}, {"who": {"$ne": "the baker"}}, {"chapter": {"$gte": 3, "$lt": 12.5}}, {"true": True}),
    *({"places": "sea"}, {"places": {"$nin": ["village"]}}, {"places": {"$exists": False}}),
    *({"true": {"$exists": True}}, {"told": {"$gt": "2024-06-05"}}, {"told": "2024-03-05T00:00:00Z"}),
    {"told": {"$lte": "2024-06-05T02:00:00+02:00"}},
    *({"who": {"$startsWith": "a"}}, {"who": {"$in": ["his sister", "nobody"]}}, {"who": {"$gt": "the c"}}, {}),
    *({"id": "story-007"}, {"id": {"$startsWith": "script"}}, {"id": {"$gte": "story-190"}}, {"chapter": 4}),
    {"$or": [{"who": "the baker"}, {"$and": [{"chapter": {"$gt": 15}}, {"true": False}]}]},
    {"$and": [{"chapter": {"$ne": 2}}, {"chapter": {"$lt": 5}}], "true": {"$in": [True]}},
    {"chapter": {"$gt": 100}},
    *({"places": {"$in": []}}, {"who": {"$nin": []}}, {"$or": [{"chapter": {"$in": []}}, {"chapter": 4}]}),
]


def requests(count: int) -> Iterator[dict[str, Any]]:
    """Yield different requests as the page makes them, half of them with filters."""
    generator = random.Random(3)
    for number in range(count):
        request: dict[str, Any] = {"num_results": generator.choice([1, 5, 10, 20, 100]), "highlights": number % 3 > 0}
        if number % 2:
            request["filter"] = generator.choice(FILTERS)
        if number % 5 == 4:
            request["facets"] = ["who", "places", "true", "chapter"]
            request["facets_of"] = "results" if number % 2 else "matching"
        if number % 7 == 6:
            request["offset"] = generator.choice([1, 10, 30])
        what = number % 9
        if what == 7:
            request["id"] = f"story-{number % 200:03}"
        elif what == 8:
            request["filter"] = request.get("filter", {})
            if number % 2:
                request["sort"] = {"told": "desc", "chapter": "asc"}
            else:
                request["boost"] = {
                    "chapter": {"log": True, "weight": 0.05},
                    "who": {"equals": "the baker", "weight": 0.1},
                }
        else:
            text, mode = generator.choice(QUERIES), ("semantic", "keyword", "hybrid", None)[number % 4]
            request |= {"text": text} | ({"mode": mode} if mode else {})
            request["correct"] = number % 11 > 0
            if number % 4 in (1, 2) and number % 3 == 0:
                request["without"] = generator.choice([["snow"], ["old baker", "sailors"], ["東京"], ["xyzzy"], ["?!"]])
            if number % 5 < 2:  # as while it is typed
                request |= {"text": text[: generator.randint(1, len(text))], "prefix": True}
        if what in (1, 4, 7):
            request |= {"group_by": "who", "group_size": generator.randint(1, 4)}
        elif what == 2:
            request["sort"] = {generator.choice(["chapter", "told", "who", "true"]): generator.choice(["asc", "desc"])}
        if number % 6 == 5 and what != 8:
            request["boost"] = {
                "told": {"half_life": "52w", "weight": 0.3},
                "true": {"equals": True, "weight": 0.1},
                "chapter": {"log": True, "weight": 0.05},
                "places": {"equals": "sea", "weight": 0.02},
            }
        yield request


def assert_equal(request: dict[str, Any], found: dict[str, Any], expected: dict[str, Any]) -> None:
    """Compare two replies. Scores are rounded to six decimals, of which the last can differ."""

    def hits(reply: dict[str, Any]) -> list[dict[str, Any]]:
        return [hit for result in reply["results"] for hit in [result, *result.get("other_passages", [])]]

    assert "error" not in found | expected, (request, found, expected)
    assert [hit["id"] for hit in hits(found)] == [hit["id"] for hit in hits(expected)], request
    for one, other in zip(hits(found), hits(expected), strict=True):
        for scores in ([hit["score"] or 0, *hit.get("scores", {}).values()] for hit in (one, other)):
            other.setdefault("all_scores", []).append(scores)
        assert other["all_scores"][0] == pytest.approx(other["all_scores"][1], abs=1.5e-6), request
        parts = ("text", "metadata", "highlights", "snippet", "group", "index")
        assert {name: one.get(name) for name in parts} == {name: other.get(name) for name in parts}, request
    rest = ("facets", "total", "corrected", "truncated")
    assert {name: found.get(name) for name in rest} == {name: expected.get(name) for name in rest}, request


def compare(site: Path, function: Function, asked: list[dict[str, Any]]) -> None:
    found = answers(site, [("similar", request) for request in asked])
    for request, reply in zip(asked, found, strict=True):
        assert_equal(request, reply, function(request))


def test_whole_replies_are_those_of_the_function(site: Path, site_bundle: Path, function_over: Connect) -> None:
    compare(site, function_over(site_bundle), list(requests(int(os.environ.get("REQUESTS", "400")))))


def test_a_least_score_leaves_out_what_it_leaves_out_in_the_function(
    site: Path, site_bundle: Path, function_over: Connect
) -> None:
    asked: list[dict[str, Any]] = []
    for number, request in enumerate(requests(120)):
        if "text" in request or "id" in request:
            boost = {"chapter": {"log": True, "weight": 0.2}} if number % 2 else {}
            asked.append(request | {"min_score": ("floor", 0.4, 0.6, 2)[number % 4], "boost": boost})
            asked.append(request | {"min_score": "floor", "boost": boost, "num_results": 100})
    compare(site, function_over(site_bundle), asked)


def test_a_floor_that_the_index_lacks_is_refused(site: Path, documents_bundle: Path, tmp_path: Path) -> None:
    lacking: dict[str, Any] = {"text": "goose", "num_results": 5, "min_score": "floor"}
    found = answers(make_site(documents_bundle, tmp_path), [("similar", lacking)])
    listed = answers(site, [("similar", {"filter": {}, "num_results": 5, "min_score": "floor"})])
    assert "min_score: found floor, but this index has none in the mode hybrid" in found[0]["error"]
    assert "min_score: found without a text" in listed[0]["error"]


@pytest.mark.parametrize("with_model", [False, True])
def test_the_floor_of_a_site_is_measured_with_the_table_that_it_learns(
    with_model: bool, corpus: Corpus, tmp_path: Path
) -> None:
    bundle = write_bundle(tmp_path / "bundle", corpus, KEYWORDS_BY_DEFAULT, make_wordpiece())
    measured = measure_floor(bundle, check_bundle(bundle)).corpus.floor
    write_site(bundle, tmp_path / "site", packages=PACKAGES, with_model=with_model)
    (described,) = tmp_path.glob("site/code/*/site.json")
    floor = json.loads(described.read_text(encoding="utf-8"))["info"]["index"]["floor"]
    assert floor.keys() == measured.keys()
    assert floor["semantic"] != asdict(measured["semantic"])
    assert floor["keyword"] == asdict(measured["keyword"])


def test_each_misspelled_word_is_corrected_as_by_the_function(
    site: Path, site_bundle: Path, many_scripts: Corpus, function_over: Connect
) -> None:
    choose, letters = random.Random(5), "aeiouxzéłδती"
    words = sorted({word for text in many_scripts.texts for word in text.split() if len(word) > 3})
    asked = []
    for word in choose.choices(words, k=300):
        place = choose.randrange(len(word) + 1)
        wrong = word[:place] + choose.choice(letters) + word[place + choose.randrange(2) :]
        asked.append({"text": wrong, "mode": "keyword", "num_results": 3})
    function = function_over(site_bundle)
    assert sum("corrected" in function(request) for request in asked) > 100
    compare(site, function, asked)


ODD_COLUMNS = {
    **{"10": "number", "2": "string", "1": "date", "__proto__": "string", "constructor": "boolean", "a.b": "list"},
    **{"huge": "number", "whole": "number", "since": "date", "until": "date", "id": "string", "é ~": "list"},
    "sizes": "numbers",
}


def odd_metadata(row: int) -> dict[str, object]:
    """Return values of ODD_COLUMNS, every seventh of which is missing."""
    lists: tuple[object, ...] = ([], ["b", "a", "b"], ["a", None], ["🦆", ""], ["Z", "é"])
    values: dict[str, object] = {
        "10": (-0.5, 0, -3, 7.25, 1e21)[row % 5],
        "2": ("", "x", "🦆", "\uffee", "X y")[row % 5],
        "1": ("1969-07-20T20:17:40Z", "1969-12-31", "1970-01-01", "0099-02-03")[row % 4],
        "__proto__": "proto" if row % 3 else "toString",
        "constructor": row % 4 > 1,
        "a.b": lists[row % 5],
        "sizes": ([38, 38.5], [], [39, 39], [2**53, None])[row % 4],
        "huge": (1e300, -1e-7, 2.5, 1e21)[row % 4],
        "whole": (2**53 - 1, -(2**53) + 1, 0, 5)[row % 4],
        "since": f"{1960 + row}-03-01T00:00:00{('', 'Z', '+05:30', '-12:00', '.000001', '.5-00:01')[row % 6]}",
        "until": ("9999-12-31", "9999-12-31T23:59:59.999999-23:59", "0001-01-01", "0001-01-01T00:00+23:59")[row % 4],
        "id": f"own-{row % 9}",
        "é ~": lists[(row + 2) % 5],
    }
    return {name: value for place, (name, value) in enumerate(values.items()) if (row + place) % 7}


def odd_requests() -> Iterator[dict[str, Any]]:
    """Yield a request for the values of each column, and different ones that compare and sort by them."""
    generator = random.Random(11)
    yield from ({"num_results": 100, "facets": [name], "highlights": False} for name in ODD_COLUMNS)
    for number in range(200):
        name = generator.choice(list(ODD_COLUMNS))
        kind = ODD_COLUMNS[name]
        values = [value for row in range(60) if (value := odd_metadata(row).get(name)) is not None]
        each = [one for value in values for one in (value if isinstance(value, list) else [value]) if one is not None]
        value = generator.choice(each)
        way = generator.choice(["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "$in", "$nin", "$exists", "$startsWith"])
        if way == "$startsWith" and kind not in ("string", "list"):
            way = "$eq"
        operand = {"$exists": True, "$in": [value], "$nin": [value]}.get(way, value)
        request: dict[str, Any] = {"num_results": 20, "filter": {name: {way: operand}}, "facets": [*ODD_COLUMNS][:10]}
        ordered = [each for each, kind in ODD_COLUMNS.items() if kind not in LIST_TYPES]
        if number % 2:
            request["sort"] = {generator.choice(ordered): generator.choice(["asc", "desc"])}
        elif number % 4:
            request |= {"text": "the baker", "mode": "keyword", "group_by": generator.choice(["2", "__proto__", "id"])}
        yield request


def test_odd_names_and_values_are_compared_sorted_and_counted_as_by_the_function(
    tmp_path: Path, function_over: Connect
) -> None:
    texts = [f"{WHO[row % 20]} {WHAT[row // 6]}." for row in range(60)]
    metadata = [json.dumps(odd_metadata(row)) for row in range(60)]
    columns = dict(sorted(ODD_COLUMNS.items()))
    corpus = Corpus(texts, [f"row-{row}" for row in range(60)], metadata, columns=columns)
    bundle = write_site_bundle(tmp_path / "bundle", corpus)
    compare(make_site(bundle, tmp_path), function_over(bundle), list(odd_requests()))


LARGEST = {"exact": 2**53 - 1, "large": 2**53, "negative": -(2**53), "unsigned": 2**64 - 1}


def test_whole_numbers_that_a_browser_rounds_are_refused_and_as_strings_compared(
    tmp_path: Path, function_over: Connect
) -> None:
    columns = {**dict.fromkeys(LARGEST, "number"), "string": "string"}
    rows = [{name: sign * number for name, number in LARGEST.items()} for sign in (1, 0)]
    metadata = [json.dumps(row | {"string": row["unsigned"]}) for row in rows]
    corpus = Corpus(WHAT[:2], ["a", "b"], metadata, columns=dict(sorted(columns.items())))
    bundle = write_site_bundle(tmp_path / "bundle", corpus)
    site = make_site(bundle, tmp_path)
    whole = {"$lte": 2**53 + 1}
    filters: list[dict[str, Any]] = [
        {"exact": 2**53 - 1},
        {"exact": 2**53 + 1},
        {"exact": whole},
        {"string": str(2**64 - 1)},
    ]
    asked = [{"num_results": 2, "filter": each, "sort": {"exact": "desc"}, "facets": ["exact"]} for each in filters]
    function = function_over(bundle)
    found = answers(site, [("similar", request) for request in asked])
    for request, reply in zip(asked, found, strict=True):
        expected = function(request)
        assert [hit["id"] for hit in reply["results"]] == [hit["id"] for hit in expected["results"]], request
        assert reply["facets"] == expected["facets"]
    for name in ("large", "negative", "unsigned"):
        wrong: list[dict[str, Any]] = [
            {"filter": {"$or": [{name: {"$in": [2**53]}}, {"exact": 1}]}},
            {"sort": {name: "asc"}},
            {"facets": [name]},
            {"text": "goose", "boost": {name: {"log": True, "weight": 0.1}}},
        ]
        for reply in answers(site, [("similar", {"num_results": 1} | request) for request in wrong]):
            assert reply["error"].startswith(f"{name}: found whole numbers from 2^53 on"), reply


def test_ranges_of_facets_are_those_of_the_function(tmp_path: Path, function_over: Connect) -> None:
    generator = random.Random(17)

    def date(days: float) -> str:
        return (datetime(1970, 1, 1) + timedelta(days)).isoformat()

    metadata = [
        {
            "whole": generator.randint(-700, 700),
            "cents": generator.randint(-600, 600) / 100,
            "largest": generator.uniform(-1, 1) * 1.79e308,
            "tiny": generator.uniform(-1, 1) * 1e-9,
            "day": date(generator.uniform(-4, 4)),
            "week": date(generator.uniform(-20, 40)),
            "month": date(generator.uniform(-100, 100)),
            "year": date(generator.uniform(-3_000, 9_000)),
            "any": generator.choice(["9999-12-31T23:59:59-23:59", date(generator.uniform(-719_162, 2_932_896))]),
        }
        for _ in range(400)
    ]
    columns = {name: "date" if isinstance(value, str) else "number" for name, value in sorted(metadata[0].items())}
    lines = [json.dumps({name: value for name, value in row.items() if generator.random() < 0.9}) for row in metadata]
    texts = [f"{WHO[row % 20]} {WHAT[row % 10]}." for row in range(len(lines))]
    corpus = Corpus(texts, [f"row-{row}" for row in range(len(lines))], lines, columns=columns)
    bundle = write_site_bundle(tmp_path / "bundle", corpus)
    function = function_over(bundle)
    filters: list[dict[str, Any]] = [{}, {"whole": {"$gt": -200}}]
    asked = [{"num_results": 1, "facets": list(columns), "filter": each} for each in filters]
    assert all("from" in facet[1] for request in asked for facet in function(request)["facets"].values())
    compare(make_site(bundle, tmp_path), function, asked)


@pytest.mark.parametrize("options", [KeywordOptions(None), None], ids=["plain", "none"])
def test_other_keywords_rank_as_in_the_function(
    corpus: Corpus, options: KeywordOptions | None, tmp_path: Path, function_over: Connect
) -> None:
    """Texts in ASCII alone have terms of version 1."""
    texts = [text.encode("ascii", "ignore").decode() for text in corpus.texts]
    plain = Corpus(texts, corpus.ids, corpus.metadata, columns=STORY_COLUMNS)
    bundle = write_site_bundle(tmp_path / "bundle", plain, options)
    modes = ("semantic", "keyword", "hybrid") if options else ("semantic",)
    asked = [{"text": text, "mode": mode, "num_results": 10} for text in QUERIES for mode in modes]
    compare(make_site(bundle, tmp_path), function_over(bundle), asked)


def test_synonyms_are_found_as_by_the_function(tmp_path: Path, many_scripts: Corpus, function_over: Connect) -> None:
    synonyms = [
        *(["sailor", "baker", "bakers", "constructor"], ["Zurich", "zürich", "turicum"], ["wlan", "AB-1234", "c++"]),
        *(["goose", "ducks", "duck", "mayor"], ["京都", "kyoto"], ["the", "cherry", "river", "key"]),
    ]
    words = [word for line in synonyms for word in line]
    others = [*("sailors bakers", "constr", "tur", "baking sailor", '"goose" key', "goose “ducks”", "sailor " * 30)]
    others += ["kyoto turicm", '"mayor"']
    bundle = write_site_bundle(tmp_path / "bundle", many_scripts, KeywordOptions(synonyms=synonyms))
    function = function_over(bundle)
    asked: list[dict[str, Any]] = [
        {"text": text, "mode": mode, "num_results": 20, "highlights": True, "prefix": prefix}
        for text in [*words, *others, *QUERIES]
        for mode in ("keyword", "hybrid")
        for prefix in (False, True)
    ]
    assert all(function(request)["results"] for request in asked[: 4 * len(words)])
    compare(make_site(bundle, tmp_path), function, asked)


# A few sentences of each language, divided by bars
IN_LANGUAGES = {
    "german": "Die Anfrage hat eine Kennung.|Häuser und Straßen der alten Stadt|Der Bäcker verkauft frische Brötchen.|"
    "Ein Schlüssel liegt im Schnee|Schlüsselkarten öffnen alle Türen.|Wir fahren mit der Fähre über den Fluss.|"
    "Regenmäntel sind im Angebot, ein Mantel für den Regen.",
    "french": "Les maisons anciennes de la ville|Le boulanger vend des pains frais.|Une clé d'argent dans la neige|"
    "Nous traversons la rivière en bac.|Les identifiants des requêtes sont uniques.|Il chantait, elle chantera.|"
    "Un parapluie pour la pluie",
    "spanish": "Las casas antiguas de la ciudad|El panadero vende panes frescos.|Una llave de plata en la nieve|"
    "Cruzamos los ríos en barco.|Los identificadores de las peticiones son únicos.|Cantábamos canciones.|"
    "Un paraguas para los días de lluvia",
    "english": "The houses of the old town|The baker sells fresh breads.|A silver key in the snow|"
    "We crossed the rivers by ferry.|Request identifiers are unique.|They were singing songs.|A raincoat for the rain",
    "ja": "東京の古い家|パン屋は新しいパンを売る。",
    "": "The bakers' houses",
}
QUERIES_IN_LANGUAGES = (
    "Kennungen|Anfragen Kennungen|Haus Straße|STRASSEN|frisches Brötchen|Schlüsseln|Fähren|Regenmantel|mantel regen|"
    "Regen Mantel|maison ancienne|boulangers|pain frais|clés|rivières|identifiant requête|chanter|parapluies|"
    "para pluie|casa antigua|panaderos|llaves|río|identificador petición|cantar canción|houses|house|bakers|breads|"
    'singing|raincoats|rain coats|東京|パン|"maisons anciennes"|"maison ancienne" ville|„alte Stadt“|"casa" ciudad|'
    '"houses"|« maisons anciennes »|«maison ancienne» ville|»alte Stadt«|»Stadt« alte|maison » ancienne » ville|'
    "l'argent|l\u2019argent|qu\u2019une|aujourd\u2019hui|Haeuser|Strasse|Schluessel|broetchen|riviere|cle d'argent|"
    "Kennugen|Schlüsel|boulangr|panadro|identifers|uncios|die der les las|Häu|boul|llav|hous|wi-fi|AB-1234|xyzzy"
)


@pytest.mark.parametrize(
    "languages", [["german"], ["french"], ["spanish"], [*IN_LANGUAGES]], ids=["german", "french", "spanish", "all"]
)
def test_a_word_of_a_query_has_the_stems_of_all_languages_as_in_the_function(
    languages: list[str], tmp_path: Path, function_over: Connect
) -> None:
    rows = [(text, language) for language in languages for text in IN_LANGUAGES[language].split("|")] * 2
    texts, metadata = zip(*((text, json.dumps({"lang": language})) for text, language in rows), strict=True)
    corpus = Corpus(texts, [f"row-{row}" for row in range(len(rows))], metadata, columns={"lang": "string"})
    if len(languages) > 1:
        options = KeywordOptions(language_column="lang", synonyms=[["Fähre", "bac", "ferry"], ["clé", "llave"]])
    else:
        options = KeywordOptions(stemming=languages[0])
    bundle = write_site_bundle(tmp_path / "bundle", corpus, options)
    site, function = make_site(bundle, tmp_path), function_over(bundle)
    asked: list[dict[str, Any]] = [
        {"text": text, "mode": mode, "num_results": 20, "highlights": True, "prefix": prefix} | others
        for text in QUERIES_IN_LANGUAGES.split("|")
        for mode in ("keyword", "hybrid")
        for prefix in (False, True)
        for others in ({}, {"without": ["Häuser der Stadt", "maison", "casas"]})
    ]
    compare(site, function, asked)
    stems = [find_stemmer(each) for each in check_bundle(bundle).corpus.keywords.stemmers]  # type: ignore[union-attr]
    divided = [*texts, *QUERIES_IN_LANGUAGES.split("|"), *random_texts(300)]
    expected = [[split_terms(text, stem, is_query=True) for stem in stems] for text in divided]
    assert answers(site, [("terms", text) for text in divided]) == expected


HEADINGS = {
    "de": ["2.1. Brötchen für Bäcker", "Kapitel\u00a03.\u00a0Straßen"],
    "fr": ["1.2 L\u2019œuvre d\u2019été", "Démission"],
    "en": ["What\u2019s new", "A.1. Install"],
}
TYPED = {
    "Brötchen für Bäcker|brotchen fur backer|2.1. Brötchen für Bäcker": "2.1. Brötchen für Bäcker",
    "Straßen|STRASSEN|kapitel 3. strassen": "Kapitel\u00a03.\u00a0Straßen",
    "l\u2019œuvre d\u2019été|l'oeuvre d'ete|1.2 L'œuvre d'été": "1.2 L\u2019œuvre d\u2019été",
    "démission|demission|de\u0301mission|DÉMISSION !": "Démission",
    "what's new|What\u2019s new?": "What\u2019s new",
    "install|A.1. install": "A.1. Install",
}


def test_a_heading_is_found_as_people_type_it_as_in_the_function(tmp_path: Path, function_over: Connect) -> None:
    texts, metadata = [], []
    for language, headings in HEADINGS.items():
        for heading in headings:
            texts += [f"goose {heading} {heading} {heading} {heading}", "ferry"]
            metadata += [{"lang": language, "headings": ["goose"]}, {"lang": language, "headings": [heading]}]
    ids = [f"{row}" for row in range(len(texts))]
    columns = {"lang": "string", "headings": "list"}
    corpus = Corpus(texts, ids, [json.dumps(each) for each in metadata], columns=columns)
    bundle = write_site_bundle(tmp_path / "bundle", corpus, KeywordOptions(language_column="lang"))
    function = function_over(bundle)
    asked: list[dict[str, Any]] = []
    for typed, heading in TYPED.items():
        for text in typed.split("|"):
            by_words = {"text": text, "mode": "keyword", "num_results": 5}
            assert function(by_words)["results"][0]["metadata"]["headings"] == [heading], text
            asked += [by_words, by_words | {"prefix": True}, by_words | {"mode": "hybrid"}]
    compare(make_site(bundle, tmp_path), function, asked)


def test_a_german_word_finds_another_form_of_it_in_a_site_of_two_languages(tmp_path: Path) -> None:
    pages = {
        "index.html": '<html lang="en"><h1>Requests</h1><p>Each request has an identifier.</p></html>',
        "de/index.html": '<html lang="de"><h1>Anfragen</h1><p>Jede Anfrage hat eine Kennung.</p></html>',
    }
    bundle = tmp_path / "bundle"
    write_site_bundle(bundle, Corpus(["The ferry"], ["a"], ["{}"]))  # so that the tests' model embeds the pages
    for name, page in pages.items():
        (tmp_path / "pages" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "pages" / name).write_text(page, encoding="utf-8")
    index(tmp_path / "pages", bundle, mode="replace", progress=False)
    asked = [("similar", {"text": text, "mode": "keyword", "num_results": 5}) for text in ("Kennungen", "identifiers")]
    found = answers(make_site(bundle, tmp_path), asked)
    assert [[hit["metadata"]["path"] for hit in reply["results"]] for reply in found] == [
        ["de/index.html"],
        ["index.html"],
    ]


def test_stages_keep_the_rows_that_the_function_keeps(
    tmp_path: Path, function_over: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    # random texts have stages of too low a recall
    monkeypatch.setattr(indexer, "choose_stages", lambda path, exact: StagesInfo(500, 100))
    generator = random.Random(5)
    words = sorted({word for text in [*WHO, *WHAT] for word in text.split()})
    texts = [" ".join(generator.choices(words, k=8)) for _ in range(9_000)]
    metadata = [json.dumps({"chapter": row % 100}) for row in range(len(texts))]
    corpus = Corpus(texts, [str(row) for row in range(len(texts))], metadata, columns={"chapter": "number"})
    bundle = write_site_bundle(tmp_path / "bundle", corpus)
    index = check_bundle(bundle).corpus_or_none
    assert index is not None
    assert index.stages is not None
    filters: list[dict[str, Any]] = [{}, {"chapter": {"$lt": 97}}, {"chapter": {"$lt": 3}}]
    asked = [
        {
            "text": " ".join(generator.choices(words, k=4)),
            "mode": mode,
            "num_results": count,
            "filter": filters[number % 3],
        }
        for number in range(30)
        for mode, count in (("semantic", 10), ("semantic", 60), ("hybrid", 10))
    ]
    function = function_over(bundle)
    for request in asked[:6:3]:  # without the texts most like the query, all others are compared
        best = [hit["id"] for hit in function(request | {"filter": {}, "num_results": 100})["results"]]
        asked.append(request | {"filter": {"id": {"$nin": best}}})
    compare(make_site(bundle, tmp_path), function, asked)


WRONG_FILTERS: list[tuple[dict[str, Any], str]] = [
    ({"colour": "red"}, "filter"),
    ({"chapter": "three"}, "filter.chapter.$eq"),
    ({"chapter": {"$in": 3}}, "filter.chapter.$in"),
    ({"$or": []}, "filter.$or"),
    ({"told": {"$lt": "2024-02-31"}}, "filter.told.$lt"),
    ({"true": {"$startsWith": "t"}}, "filter.true"),
    ({"$or": [{}, {"who": {"$near": 1}}]}, "filter.$or.1.who"),
    ({"who": {"$exists": 1}}, "filter.who.$exists"),
]


def test_a_wrong_filter_and_an_id_that_no_text_has_are_named(site: Path) -> None:
    asked: list[dict[str, Any]] = [*({"filter": condition} for condition, _ in WRONG_FILTERS), {"id": "story-999"}]
    *found, unknown = answers(site, [("similar", {"num_results": 1} | request) for request in asked])
    for reply, (_, where) in zip(found, WRONG_FILTERS, strict=True):
        assert reply["error"].startswith(where)
        assert "expected" in reply["error"]
    assert unknown == {"error": "there is no text with the id story-999; search for one"}
