"""The options of `index`: each is recorded or about one run, updates use recorded ones, wrong values are refused."""

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from semsearch.engine.bundle import MANIFEST, BundleError, read_manifest
from semsearch.engine.errors import OptionError
from semsearch.indexing.make import index
from semsearch.indexing.modes import Mode
from semsearch.indexing.options import Topic, all_options, content_options, new_options, options_of
from semsearch.indexing.steps import IndexOptions
from semsearch.indexing.synonyms import read_synonyms
from tests.command_line import run
from tests.project import ROOT

SYNONYMS = str(Path(__file__).parents[1] / "data" / "synonyms.txt")
CONTENT: dict[str, Any] = {  # values of the options that an update takes from its bundle
    "revision": "v1",
    "pooling": "cls",
    "dimensions": 64,
    "query_prompt": "",
    "document_prompt": "passage: ",
    "title": "Old stories",
    "description": "Told by bakers.",
    "text_column": ["title", "body"],
    "separator": ";",
    "exclude": ["drafts/*"],
    "include": ["*.py"],
    "ignore": False,
    "follow_symlinks": True,
    "drafts": True,
    "decimal_comma": True,
    "id_column": "number",
    "column": {"year": "number"},
    "split": True,
    "passage_tokens": 100,
    "overlap": 10,
    "describe": {"notes": "minutes"},
    "base_url": "https://example.org",
    "anchors": "mkdocs",
    "keywords": False,
    "stem": "german",
    "queries": "table",
    "title_column": "headline",
    "language_column": "language",
    "fusion_weight": 0.7,
    "synonyms": SYNONYMS,
    "boost": {"told": {"half_life": "30d", "weight": 0.2}},
}


def test_every_parameter_is_an_option_and_every_mode_has_a_flag() -> None:
    options = options_of(index)
    assert list(options) == list(inspect.signature(index).parameters)
    assert {name for name, option in options.items() if option.recorded} == CONTENT.keys()
    assert set(options["mode"].flags) == set(get_args(Mode))


def names_in(options: type[Any]) -> set[str]:
    """Return the names of the options that a dataclass gathers."""
    found = set[str]()
    for name, kind in get_type_hints(options).items():
        found |= names_in(kind) if is_dataclass(kind) and isinstance(kind, type) else {name}
    return found


def test_a_step_names_options_that_exist_and_each_option_is_used() -> None:
    used, options = names_in(IndexOptions), options_of(index).keys()
    of_others = {"has_ids", "text_option"}  # for calibration texts
    assert used - options == {"recorded", "recorded_before", "argument_names", *of_others}
    read_from_recorded = {"title", "description", "boost"}
    assert options - used == {"data", "wait", *read_from_recorded}


def test_the_options_of_a_topic_follow_each_other() -> None:
    topics = [option.topic for option in options_of(index).values()]
    assert [topic for topic, _ in groupby(topics)] == list(Topic)


def stated(*arguments: Any, **options: Any) -> dict[str, Any]:
    """Return all options with which `index` would run."""
    return all_options(index, *arguments, **options)


@pytest.fixture
def recorded(bundle_copy: Path) -> Callable[..., Path]:
    """Return a function that records options in the manifest of a bundle."""

    def record(**options: Any) -> Path:
        content = content_options(index, stated("f", "none", **options))
        manifest = read_manifest(bundle_copy)
        described = replace(manifest, corpus_or_none=replace(manifest.corpus, options=content)).to_json()
        (bundle_copy / MANIFEST).write_text(described)
        return bundle_copy

    return record


@pytest.mark.parametrize(("option", "value"), CONTENT.items(), ids=CONTENT)
def test_an_update_uses_each_option_of_the_index(recorded: Callable[..., Path], option: str, value: Any) -> None:
    first = stated("f", "none", **{option: value})
    updated = stated("g", recorded(**{option: value}))
    assert updated[option] == first[option]
    assert list(content_options(index, updated)) == [option]


@pytest.mark.parametrize(
    ("before", "now", "kept"),
    [
        ({"title": "A", "split": True}, {"title": "B", "split": False}, {"title": "B"}),
        ({"title": "A", "text_column": "t", "stem": "german"}, {"title": "", "text_column": ""}, {"stem": "german"}),
        ({"column": {"a": "date", "b": "date"}}, {"column": {"b": "none"}}, {"column": {"a": "date", "b": "none"}}),
        ({"stem": "dutch", "fusion_weight": 0.5, "title": "A"}, {"keywords": False}, {"keywords": False, "title": "A"}),
        ({"keywords": False}, {"keywords": True, "stem": "german"}, {"stem": "german"}),
        ({"synonyms": SYNONYMS, "title": "A"}, {"synonyms": ""}, {"title": "A"}),
        ({"passage_tokens": 100}, {"passage_tokens": 200}, {}),
    ],
)
def test_a_stated_option_replaces_the_recorded_one(
    recorded: Callable[..., Path], before: dict[str, Any], now: dict[str, Any], kept: dict[str, Any]
) -> None:
    assert content_options(index, stated("g", recorded(**before), **now)) == kept


def test_an_option_that_contradicts_a_recorded_one_is_an_error(recorded: Callable[..., Path]) -> None:
    done = run("index", "g", "--out", recorded(passage_tokens=300, overlap=250), "--passage-tokens", "50")
    assert done.code == 2
    assert "--overlap: found 250, expected less than passage_tokens, 50" in done.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rerank_weight": 0.5}, "rerank_weight: has no effect without rerank; add it"),
        ({"calibration_column": "t"}, "calibration_column: has no effect without calibration"),
        ({"overlap": 200}, "overlap: found 200, expected less than passage_tokens, 200"),
        ({"overlap": -1}, "overlap: found -1, expected 0 or more"),
        ({"dimensions": 0}, "dimensions: found 0, expected 1 or more"),
        ({"stem": "klingon"}, "stem: found 'klingon', expected one of none, "),
        ({"fusion_weight": 1.5}, "fusion_weight: found 1.5, expected a number from 0 to 1"),
        ({"dtype": "int4"}, "dtype: found 'int4', expected one of "),
        ({"learn": True}, "learn: is for a query table; add queries=table"),
        ({"title": "two\nlines"}, r"title: found 'two\\nlines', expected one line of at most 1000 characters"),
        ({"separator": "::"}, "separator: found '::', expected one character"),
        ({"column": {"year": "Number"}}, "column: found year=Number, expected a type of string, number, boolean, date"),
        ({"text_column": ["a,b", "c"]}, "text_column: found .* expected names without a comma"),
        ({"passage_tokens": 0}, "passage_tokens: found 0, expected 1 or more"),
        ({"fusion_weight": -0.1}, "fusion_weight: found -0.1, expected a number from 0 to 1"),
        ({"title": "x" * 1001}, "title: found 'x{60}', expected one line of at most 1000 characters"),
        ({"separator": '"'}, "separator: found '\"', expected one character, such as ';'"),
        ({"separator": ""}, "separator: found '', expected one character"),
        ({"column": {"": "number"}}, "column: found =number, expected a type of string, number, boolean, date"),
        ({"device": "gpu"}, "device: found 'gpu', expected auto, cpu, mps, cuda, or one GPU such as cuda:1"),
        ({"device": "cuda:"}, "device: found 'cuda:'"),
        ({"dtype": "float16"}, "dtype: float16 is for a GPU; choose float32, or add --device cuda"),
        ({"dtype": "int8", "device": "auto"}, "dtype: int8 is for the processor; choose float16 or float32, or leave"),
        ({"questions": Path("q.jsonl")}, "questions: is for a query table; add queries=table"),
        ({"mode": "merge"}, "mode: found 'merge', expected one of replace, add, upsert$"),
        ({"rerank_revision": "v1"}, "rerank_revision: has no effect without rerank; add it"),
        ({"embeddings": [], "split": True}, "split: has no effect with embeddings, which are those of whole rows"),
        ({"embeddings": [], "ray": "auto"}, "ray: has no effect with embeddings"),
        ({"embeddings": [], "dtype": "float32"}, "dtype: has no effect with embeddings"),
        ({"embeddings": [], "device": "auto"}, "device: has no effect with embeddings; leave it out"),
    ],
)
def test_unusable_options_are_refused_with_the_reason(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        stated("f", "none", **options)


@pytest.mark.parametrize(
    ("options", "forms"),
    [
        ({"fusion_weight": 0}, {}),
        ({"fusion_weight": 1}, {}),
        ({"rerank_weight": 1, "rerank": "m"}, {}),
        ({"overlap": 0, "passage_tokens": 1}, {}),
        ({"overlap": 1, "passage_tokens": 2}, {}),
        ({"dimensions": 1}, {}),
        ({"title": f" {'x' * 1000} "}, {"title": "x" * 1000}),
        ({"separator": "\t"}, {}),
        ({"text_column": []}, {"text_column": None}),
        ({"text_column": ["a,b"]}, {"text_column": "a,b"}),
        ({"text_column": ["a", "b"]}, {"text_column": "a,b"}),
        ({"text_column": ""}, {"text_column": None}),
        ({"id_column": ""}, {"id_column": None}),
        ({"column": None}, {"column": {}}),
        ({"boost": None}, {"boost": {}}),
        ({"stem": "none"}, {}),
        ({"synonyms": Path(SYNONYMS)}, {"synonyms": read_synonyms(Path(SYNONYMS))}),
        ({"synonyms": [["a", "b"]]}, {}),
        ({"synonyms": []}, {"synonyms": None}),
        ({"update": "b"}, {"update": Path("b")}),
        ({"exclude": ("a", "b")}, {"exclude": ["a", "b"]}),
        ({"include": ("a", "b")}, {"include": ["a", "b"]}),
        *(({"device": device, "dtype": "float32"}, {}) for device in ("cpu", "mps", "cuda", "cuda:12", "auto")),
        ({"device": "cpu", "dtype": "int8"}, {}),
        ({"device": "cuda", "dtype": "float16"}, {}),
        ({"queries": "table", "learn": True, "questions": Path("q")}, {}),
        ({"embeddings": [1.0]}, {}),
        ({"mode": None}, {}),
        ({"mode": "upsert"}, {}),
    ],
)
def test_options_have_the_form_that_a_manifest_records(options: dict[str, Any], forms: dict[str, Any]) -> None:
    found = new_options(index, {"data": "f", **options})
    assert {name: found[name] for name in options} == options | forms


def test_the_older_bundle_can_have_the_reranker_whose_weight_is_stated(bundle: Path) -> None:
    assert stated("f", bundle, rerank_weight=0.3)["rerank_weight"] == 0.3
    with pytest.raises(OptionError, match="rerank_weight: has no effect without rerank; add it"):
        stated("f", bundle, rerank_weight=0.3, model="m")
    with pytest.raises(OptionError, match="calibration: is for a new model"):
        stated("f", bundle, calibration=Path("c"))
    assert stated("f", bundle, calibration=Path("c"), rerank="m")["model"] is None


def test_a_damaged_older_bundle_says_what_happens_without_it(bundle_copy: Path) -> None:
    (bundle_copy / MANIFEST).write_text("{")
    with pytest.raises(BundleError) as caught:
        stated("f", "none", update=bundle_copy)
    assert caught.value.__notes__ == ["without this folder, the texts are indexed anew; state all options then"]


def test_an_index_knows_the_options_of_the_folder_before_it(bundle: Path, recorded: Callable[..., Path]) -> None:
    assert stated("f", bundle)["recorded_before"] == {}
    assert stated("f", "none")["recorded_before"] is None
    other = recorded(title="A")
    assert stated("f", "none", update=other)["recorded_before"] is None
    assert stated("f", other, update=bundle)["recorded_before"] == {"title": "A"}
    assert stated("f", other, update=bundle)["title"] == ""


def test_an_option_of_a_model_needs_a_new_model(bundle: Path) -> None:
    with pytest.raises(OptionError, match="pooling: is for a new model, and the one of the index is kept"):
        stated("f", bundle, pooling="cls")
    assert stated("f", bundle, pooling="cls", model="m")["pooling"] == "cls"


def test_a_bundle_in_the_folder_is_updated_and_another_is_used_if_it_is_named(bundle: Path) -> None:
    assert stated("f", bundle)["update"] == bundle
    assert stated("f", "none", update=bundle)["update"] == bundle
    assert stated("f", "none")["update"] is None


def test_the_page_of_options_is_what_the_signature_says() -> None:
    from tests.commands.options_page import options_page

    assert (ROOT / "docs" / "options.md").read_text(encoding="utf-8") == options_page()
