"""Ids of pandas frames: the same job, night after night, whatever was done to the frame before."""

from collections.abc import Callable, Iterator, Mapping
from itertools import permutations
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from semsearch import BundleError, CorpusError, Search, index
from tests.indexing.coats import found

Step = Callable[[pd.DataFrame], pd.DataFrame]
Texts = dict[str, tuple[str, dict[str, Any]]]  # the text and the metadata by id

NUMBER = 8


def coats(night: int) -> pd.DataFrame:
    """Return the rows of a night: half of them are those of the night before, with other texts."""
    numbers = range(night * NUMBER // 2, night * NUMBER // 2 + NUMBER)
    return pd.DataFrame(
        {
            "sku": [f"c-{number}" for number in numbers],
            "text": [f"A coat {number} of the night {night}" for number in numbers],
            "price": [(number * 37) % 100 for number in numbers],
        }
    )


def steps(reset: Step) -> dict[str, Step]:
    return {
        "filter": lambda frame: frame[frame["price"] >= 30],
        "sort": lambda frame: frame.sort_values("price", ascending=False),
        "concatenate": lambda frame: pd.concat([frame.iloc[3:], frame.iloc[:3]]),
        "reset": reset,
    }


def labelled(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.drop(columns="sku").set_axis(pd.Index(frame["sku"].tolist()))


JOBS: Mapping[str, tuple[Step, Step, str | None]] = {  # the frame, how it is reset, and the stated id_column
    "a stated column": (lambda frame: frame, lambda frame: frame.reset_index(drop=True), "sku"),
    "the column id": (
        lambda frame: frame.rename(columns={"sku": "id"}),
        lambda frame: frame.reset_index(drop=True),
        None,
    ),
    "a named index": (lambda frame: frame.set_index("sku"), lambda frame: frame.reset_index(), "sku"),
    "labels": (labelled, lambda frame: frame.reset_index(), "index"),
}


def nights_of(reset: Step) -> Iterator[list[tuple[Step, ...]]]:
    """Yield three nights at a time, each with another order of the steps, until each order had its night."""
    orders = list(permutations(steps(reset).values()))
    for begin in range(0, len(orders), 3):
        yield orders[begin : begin + 3]


def stored(bundle: Path) -> Texts:
    return {hit.id: (hit.text, hit.metadata) for hit in Search(bundle).search(filter={}, top_k=100)}


@pytest.mark.parametrize("job", JOBS)
def test_a_nightly_upsert_has_the_same_result_in_each_order_of_the_steps_before(
    job: str, out: Path, tmp_path: Path
) -> None:
    make, reset, id_column = JOBS[job]
    for number, nights in enumerate(nights_of(reset)):
        bundle = tmp_path / f"bundle-{number}"
        index(["a goose"], out=bundle, update=out)
        index([{"id": "first", "text": "An older coat"}], out=bundle, mode="replace")
        expected: Texts = {"first": ("An older coat", {})}
        for night, order in enumerate(nights):
            expected |= {
                row["sku"]: (row["text"], {"price": row["price"]})
                for row in coats(night).to_dict("records")
                if row["price"] >= 30
            }
            frame = make(coats(night))
            for step in order:
                frame = step(frame)
            index(frame, out=bundle, mode="upsert", id_column=id_column)
            assert stored(bundle) == expected


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_labels_without_a_name_are_no_ids_in_any_order_of_the_steps(order: tuple[int, ...], out: Path) -> None:
    index([{"text": "An older coat"}], out=out)
    frame = coats(0)
    for number in order:
        frame = list(steps(lambda frame: frame.reset_index(drop=True)).values())[number](frame)
    with pytest.raises(BundleError, match=r"these have none; .*id_column='index'"):
        index(frame, out=out, mode="upsert")
    assert index(frame, out=out, mode="add").warnings == ()
    assert list(found(out)) == [str(number) for number in range(1 + len(frame))]


@pytest.mark.parametrize("labels", [range(4), range(5, 9), [3, 0, 2, 1], [7, 7, 7, 7], list("abcd")])
def test_no_label_decides_whether_rows_are_added(labels: Any, out: Path) -> None:
    index(["a goose", "a ferry"], out=out)
    index(pd.DataFrame({"text": list("wxyz")}, index=labels), out=out, mode="add")
    assert found(out) == {"0": "a goose", "1": "a ferry", "2": "w", "3": "x", "4": "y", "5": "z"}


def test_an_index_whose_ids_were_labels_says_how_to_go_on(out: Path) -> None:
    index([{"id": label, "text": "A coat"} for label in "ab"], out=out)
    frame = pd.DataFrame({"text": ["A red coat", "A blue coat"]}, index=["b", "c"])
    with pytest.raises(
        BundleError, match=r"labels of a DataFrame, also those of an older index, state id_column='index'"
    ):
        index(frame, out=out, mode="upsert")
    index(frame, out=out, mode="upsert", id_column="index")
    assert found(out) == {"a": "A coat", "b": "A red coat", "c": "A blue coat"}
    index(frame.iloc[:1].assign(text="A green coat"), out=out, mode="upsert")  # the option is recorded
    assert found(out)["b"] == "A green coat"


TEXTS = {"text": ["a", "b"]}
DAYS = pd.to_datetime(["2024-05-31", "2024-06-01"])


@pytest.mark.parametrize(
    ("frame", "expected"),
    [
        (pd.DataFrame(TEXTS), {"0": {}, "1": {}}),
        (pd.DataFrame(TEXTS, index=[5, 3]), {"5": {}, "3": {}}),
        (pd.DataFrame(TEXTS, index=DAYS), {"2024-05-31T00:00:00": {}, "2024-06-01T00:00:00": {}}),
        (pd.DataFrame(TEXTS | {"index": ["x", "y"]}, index=["p", "q"]), {"x": {}, "y": {}}),
        (pd.DataFrame(TEXTS, index=pd.Index(["p", "q"], name="index")), {"p": {}, "q": {}}),
        (pd.DataFrame(TEXTS | {"id": ["x", "y"]}, index=["p", "q"]), {"p": {"id": "x"}, "q": {"id": "y"}}),
        (pd.Series(["a", "b"], index=["p", "q"]), {"p": {}, "q": {}}),
    ],
    ids=["row numbers", "numbers", "dates", "a column index", "an index of this name", "a column id", "a series"],
)
def test_the_labels_are_ids_if_that_is_stated_and_a_column_of_this_name_comes_first(
    frame: Any, expected: dict[str, Any], out: Path
) -> None:
    index(frame, out=out, id_column="index")
    assert {id: metadata for id, (_, metadata) in stored(out).items()} == expected


@pytest.mark.parametrize(
    "index_of_frame",
    [pd.Index(["p", "q"], name="sku"), pd.MultiIndex.from_tuples([("x", 1), ("y", 2)])],
    ids=["a named index", "levels"],
)
def test_labels_that_have_names_are_refused_as_the_column_index(index_of_frame: Any, out: Path) -> None:
    with pytest.raises(CorpusError, match="expected a column 'index'"):
        index(pd.DataFrame(TEXTS, index=index_of_frame), out=out, id_column="index")


def test_a_named_index_has_the_ids_also_if_they_are_numbers_or_repeat(out: Path) -> None:
    frame = pd.DataFrame(TEXTS | {"id": ["x", "y"]}).rename_axis("number")
    index(frame, out=out)
    assert stored(out) == {"0": ("a", {"id": "x"}), "1": ("b", {"id": "y"})}
    made = index(pd.DataFrame(TEXTS, index=pd.Index(["p", "p"], name="sku")), out=out, mode="replace")
    assert made.repeated_ids == 1
    assert any("1 texts have the id of an earlier one" in warning for warning in made.warnings)


@pytest.mark.parametrize("labels", [list("ab"), [0.5, 1.5], DAYS], ids=["strings", "fractions", "dates"])
def test_labels_that_are_no_numbers_are_not_left_out_in_silence(labels: Any, out: Path) -> None:
    (warning,) = index(pd.DataFrame(TEXTS, index=labels), out=out).warnings
    assert "the labels of the DataFrame, such as" in warning
    assert "id_column='index'" in warning
