"""Rows of a table that change: in a file, which is indexed again as a whole, or in memory, by the modes of `index`."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from semsearch import IndexSummary, index, remove
from tests.indexing.changes.words import other, sentence

Row = dict[str, Any]

LONGER_THAN_THE_MODEL_READS = 4  # sentences
# Options of keyword search and of the manifest, which rows that stay can take too
OPTIONS: Mapping[str, list[Any]] = {
    "title_column": [None, "name"],
    "language_column": [None, "language"],
    "synonyms": [None, [["goose", "gander"], ["ferry", "boat"]]],
    "keywords": [True, False],
    "stem": [None, "german", "none"],
    "boost": [None, {"year": {"log": True, "weight": 0.1}}],
    "description": ["", "Stories"],
}
# Options that change what a text or an id is
TABLE_OPTIONS: Mapping[str, list[Any]] = {
    **OPTIONS,
    "id_column": ["sku", None],
    "text_column": ["text", ["name", "text"]],
    "split": [False, True],
    "passage_tokens": [20, 12],
}


def new_row(choose: Random, number: int, optional: Sequence[str] = ("name", "price", "told", "language")) -> Row:
    """Return a row with a column of each kind; sometimes it lacks one of the optional ones."""
    row: Row = {"sku": f"c-{number}", "text": sentence(choose), "name": choose.choice(["Goose", "A ferry", "key.of"])}
    if not choose.randrange(8):
        row["text"] = " ".join(sentence(choose) for _ in range(LONGER_THAN_THE_MODEL_READS))
    row |= {"year": choose.randint(1990, 2020), "price": choose.choice([7, 70, 700])}
    row |= {"told": f"2024-0{choose.randint(1, 9)}-05", "language": choose.choice(["en", "de", "de-AT"])}
    for name in choose.sample(optional, choose.choice([0, 0, 1])):
        del row[name]
    return row


class Table:
    """The rows of a CSV or of JSON lines, and the options of its index."""

    def __init__(self, path: Path, choose: Random) -> None:
        self.path, self.choose = path, choose
        self.rows = [new_row(choose, number) for number in range(14)]
        self.options: dict[str, Any] = {name: values[0] for name, values in TABLE_OPTIONS.items()}
        self.added = len(self.rows)  # rows until now

    def update(self, out: Path) -> IndexSummary:
        """Write the file, and index it."""
        make: Callable[..., IndexSummary] = index
        return make(write_table(self.path, self.rows), out=out, progress=False, **self.options)

    def make_fresh(self, out: Path) -> IndexSummary:
        """Index a file of the same name in an empty index."""
        make: Callable[..., IndexSummary] = index
        path = write_table(out.with_name(self.path.name), self.rows)
        return make(path, out=out, progress=False, **self.options)

    def change_a_text(self) -> str:
        """Write another text into a row, sometimes one that is blank."""
        row = self.choose.choice(self.rows[1:])
        row["text"] = self.choose.choice([sentence(self.choose), sentence(self.choose), " "])
        return f"{row['sku']}: {row['text']}"

    def change_a_cell(self) -> str:
        """Write another value of the same kind into a column, or none."""
        row, new = self.choose.choice(self.rows), new_row(self.choose, 0)
        name = self.choose.choice(["name", "year", "price", "told", "language"])
        if name == "year" or name in new:
            row[name] = new[name]
        else:
            row.pop(name, None)
        return f"{row['sku']}: {name}={row.get(name)!r}"

    def write_a_text_among_numbers(self) -> str:
        """Write a text into a column of numbers, or a number in its place."""
        for row in self.rows:
            if row.get("price") == "dear":
                row["price"] = 5
                return f"{row['sku']}: 5"
        row = self.choose.choice(self.rows)
        row["price"] = "dear"
        return f"{row['sku']}: dear"

    def write_a_number_of_another_form(self) -> str:
        """Write a price with a fraction, or in a CSV one that JSON writes otherwise, or neither."""
        row = self.choose.choice(self.rows)
        row["price"] = self.choose.choice([7, 7.5, "7.50" if self.path.suffix == ".csv" else 7e300])
        return f"{row['sku']}: {row['price']}"

    def add_or_drop_a_column(self) -> str:
        """Let one row have a column that no other has, or none."""
        for row in self.rows:
            if row.pop("tag", None) is not None:
                return f"{row['sku']} has none"
        row = self.choose.choice(self.rows)
        row["tag"] = self.choose.choice(["new", 3, True])
        return f"{row['sku']} has {row['tag']!r}"

    def add_a_row(self) -> str:
        """Insert a row, sometimes one with the id of another."""
        row = new_row(self.choose, self.choose.choice([0, self.added, self.added]))
        self.added += 1
        place = self.choose.randint(0, len(self.rows))
        self.rows.insert(place, row)
        return f"{row['sku']} at {place}"

    def remove_a_row(self) -> str:
        """Delete a row, unless only a few are left."""
        if len(self.rows) < 4:
            return "none"
        return str(self.rows.pop(self.choose.randrange(len(self.rows)))["sku"])

    def move_a_row(self) -> str:
        """Move a row to another place."""
        row = self.rows.pop(self.choose.randrange(len(self.rows)))
        place = self.choose.randint(0, len(self.rows))
        self.rows.insert(place, row)
        return f"{row['sku']} to {place}"

    def change_an_option(self) -> str:
        """Choose another value of an option."""
        name = self.choose.choice([*TABLE_OPTIONS])
        self.options[name] = other(self.choose, TABLE_OPTIONS[name], self.options[name])
        return f"{name}={self.options[name]!r}"


def write_table(path: Path, rows: list[Row]) -> Path:
    """Write the rows as the suffix of the path says; a CSV has a column for each name of a value."""
    if path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(dict.fromkeys(name for row in rows for name in row)))
        writer.writeheader()
        writer.writerows(rows)
    return path


TABLE_CHANGES: tuple[Callable[[Table], str], ...] = (
    Table.change_a_text,
    Table.change_a_cell,
    Table.write_a_text_among_numbers,
    Table.write_a_number_of_another_form,
    Table.add_or_drop_a_column,
    Table.add_a_row,
    Table.remove_a_row,
    Table.move_a_row,
    Table.change_an_option,
)
TYPE_CHANGES = (Table.write_a_text_among_numbers, Table.add_or_drop_a_column)


# Rows that are sent alone need a column that an option names: tests/indexing/test_merged_tables.py
OPTIONAL = ("price", "told")


class Rows:
    """Rows in memory, of which some are upserted, added or removed, and what all of them are then."""

    def __init__(self, choose: Random, count: int = 14) -> None:
        self.choose = choose
        self.rows = [new_row(choose, number, OPTIONAL) for number in range(count)]
        self.options: dict[str, Any] = {name: values[0] for name, values in OPTIONS.items()}
        self.added = len(self.rows)
        self._update = self._index(self.rows)

    def update(self, out: Path) -> IndexSummary:
        """Do what the last change says."""
        return self._update(out=out)

    def make_fresh(self, out: Path) -> IndexSummary:
        """Index all rows in an empty index."""
        return self._index(self.rows)(out=out)

    def upsert_rows(self) -> str:
        """Change some rows, and bring some that are new, in any order."""
        changed = [self.choose.randrange(self.added) for _ in range(self.choose.randint(1, 3))]
        sent = [new_row(self.choose, number, OPTIONAL) for number in changed]
        sent += self._new_rows(self.choose.randint(0, 2))
        sent = list({row["sku"]: row for row in self.choose.sample(sent, len(sent))}.values())
        self._upsert(sent)
        return json.dumps(sent)

    def upsert_a_row_as_it_is(self) -> str:
        """Send a row that is there."""
        row = dict(self._any_row())
        self._upsert([row])
        return str(row["sku"])

    def upsert_a_text_among_numbers(self) -> str:
        """Send a row with a text in a column of numbers, or a number in its place."""
        row = dict(next((row for row in self.rows if row.get("price") == "dear"), self._any_row()))
        row["price"] = 5 if row.get("price") == "dear" else "dear"
        self._upsert([row])
        return json.dumps(row)

    def upsert_a_row_with_another_column(self) -> str:
        """Send a row with a column that no other has, or without it."""
        row = dict(next((row for row in self.rows if "tag" in row), self._any_row()))
        if row.pop("tag", None) is None:
            row["tag"] = self.choose.choice(["new", 3, ["a", "b"]])
        self._upsert([row])
        return json.dumps(row)

    def add_rows(self) -> str:
        """Bring rows that are new."""
        sent = self._new_rows(self.choose.randint(1, 3))
        self.rows = [*self.rows, *sent]
        self._update = self._index(sent, mode="add")
        return json.dumps(sent)

    def replace_all_rows(self) -> str:
        """Send some of the rows and a new one in another order."""
        kept = self.choose.sample(self.rows, max(3, len(self.rows) - 2))
        self.rows = [*kept, *self._new_rows(1)]
        self._update = self._index(self.rows, mode="replace")
        return json.dumps(self.rows)

    def remove_rows(self) -> str:
        """Name the ids of rows, which are then gone, unless only a few are left."""
        ids = [row["sku"] for row in self.choose.sample(self.rows, min(2, len(self.rows) - 3))]
        if not ids:
            return self.upsert_a_row_as_it_is()
        self.rows = [row for row in self.rows if row["sku"] not in ids]
        self._update = partial(_remove, ids)
        return str(ids)

    def change_an_option(self) -> str:
        """Choose another value of an option, and send a row that is there."""
        name = self.choose.choice([*OPTIONS])
        self.options[name] = other(self.choose, OPTIONS[name], self.options[name])
        return f"{name}={self.options[name]!r}, {self.upsert_a_row_as_it_is()}"

    def _any_row(self) -> Row:
        """Return a row that is not the last, so that its place shows whether an upsert keeps it."""
        return self.choose.choice(self.rows[:-1])

    def _new_rows(self, count: int) -> list[Row]:
        self.added += count
        return [new_row(self.choose, number, OPTIONAL) for number in range(self.added - count, self.added)]

    def _upsert(self, sent: list[Row]) -> None:
        by_id = {row["sku"]: row for row in sent}
        known = {row["sku"] for row in self.rows}
        self.rows = [by_id.get(row["sku"], row) for row in self.rows] + [row for row in sent if row["sku"] not in known]
        self._update = self._index(sent, mode="upsert")

    def _index(self, rows: list[Row], mode: str | None = None) -> Callable[..., IndexSummary]:
        make: Callable[..., IndexSummary] = index
        return partial(make, rows, id_column="sku", mode=mode, progress=False, **self.options)


def _remove(ids: list[str], out: Path) -> IndexSummary:
    return remove(ids, out, progress=False)


ROW_CHANGES: tuple[Callable[[Rows], str], ...] = (
    Rows.upsert_rows,
    Rows.upsert_a_row_as_it_is,
    Rows.upsert_a_text_among_numbers,
    Rows.upsert_a_row_with_another_column,
    Rows.add_rows,
    Rows.replace_all_rows,
    Rows.remove_rows,
    Rows.change_an_option,
)
TYPE_CHANGES_OF_ROWS = (Rows.upsert_a_text_among_numbers, Rows.upsert_a_row_with_another_column)
# Changes that can be made once more, after a run that was killed at its end
REPEATABLE = (Rows.upsert_rows, Rows.upsert_a_text_among_numbers, Rows.replace_all_rows, Rows.change_an_option)
