"""What an update of an index costs: of one edited line in a folder of documents, and of one row of a table.

`python -m bench.update KIND SOURCE BUNDLE` is a program that updates a bundle twice in each way, and prints what the
second time costs. With the kind `watched`, an agent that watches the documents does. All updates take turns, round by
round. Folders, tables, first indexes and stores of peers are kept.
"""

import csv
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from bench import DATA, PROJECT, WORK
from bench.costs import Cost, measure, measure_second
from bench.nearest import blocks
from bench.serve import children
from bench.tables import make_provenance, report
from bench.work import QUERY_WORDS, SEED, make_once, peer_python, read_texts
from semsearch import index, load_bundle, remove
from semsearch.commands.places import kept_index
from semsearch.engine.bundle import MANIFEST, read_manifest

HEADINGS = ("#", "##")  # each begins a section of a document
SECTION_CHARACTERS = 500  # minimum characters of a section
DOCUMENTS_PER_FOLDER = 100
FIRST = "first index"
SAME, EDITED = "command, nothing changed", "command, one line edited"
EDITED_IN_PROGRAM = "program, one line edited"
WATCHED = "agent that watches, until it answers with the edited line"
UPSERTED, REMOVED = "program, one row upserted", "program, one row removed"
STORES = ("LanceDB", "Chroma")  # as bench/peers/stores.py names them
SECONDS_UNTIL_STILL = 5  # from an agent's answer to its next document, so that nothing of the last update runs
SECONDS_BETWEEN_QUESTIONS = 0.05
Costs = dict[str, Cost]  # by the kind of update


@dataclass(frozen=True, slots=True)
class Source:
    """Documents or rows of one size, and what measures one update of each kind, which takes `path` and `bundle`."""

    name: str
    path: Path
    measure_updates: Callable[[Path, Path], Costs]

    @property
    def bundle(self) -> Path:
        """Return the folder of the index."""
        return self.path.with_name(f"{self.path.stem}-bundle")


def update(
    *,
    documents: str = "30,3000",
    notes: str = "30000",
    rows: str = "300,30000,200000",
    rounds: int = 3,
    work: Path = WORK,
    data: Path = DATA,
) -> None:
    """What an update of an index costs, by the size of the index.

    Args:
        documents: numbers of documents of 1 KB, separated by commas.
        notes: numbers of documents of one line.
        rows: numbers of rows of a table.
        rounds: updates of each kind, whose median counts.
    """
    texts = read_texts(data, 10**6)
    folder = work.absolute() / "update" / texts.kind.split()[0]
    folder.mkdir(parents=True, exist_ok=True)
    python = peer_python(work.absolute(), "stores")
    sources = []
    for kind, sizes in (("documents", documents), ("notes", notes)):
        for size in sorted({min(int(size), len(texts.texts)) for size in sizes.split(",")}):
            path = write_documents(folder / f"{kind}-{size}", texts.texts, size)
            sources.append(Source(f"{size:,} {kind}", path, update_documents))
    for size in sorted({min(int(size), len(texts.texts)) for size in rows.split(",")}):
        path = write_rows(folder / f"rows-{size}.csv", texts.texts[:size])
        sources.append(Source(f"{size:,} rows", path, partial(update_rows, python)))
    seen = {source.name: {FIRST: [first_index(source.path, source.bundle)]} for source in sources}
    for _ in range(rounds):
        for source in sources:
            for kind, cost in source.measure_updates(source.path, source.bundle).items():
                seen[source.name].setdefault(kind, []).append(cost)
                print(f"{source.name}, {kind}: {cost.processor:,.2f}, {cost.wall:,.2f}", flush=True)
    stored = {source.name: bytes_of(source.bundle) for source in sources}
    details = {
        name: {kind: [cost._asdict() for cost in several] for kind, several in costs.items()} | {"bytes": stored[name]}
        for name, costs in seen.items()
    }
    report("update", *table(seen, stored), details, make_provenance(texts.description()))


def write_documents(folder: Path, texts: Sequence[str], count: int) -> Path:
    """Return a folder with this number of Markdown files, written unless it is there.

    They have about 1 KB. In a folder of notes, each has one text.
    """
    if not folder.exists():
        chance, unfinished = random.Random(SEED), folder.with_name(f"{folder.name}.unfinished")
        shutil.rmtree(unfinished, ignore_errors=True)
        for number in range(count):
            path = document_path(unfinished, number)
            path.parent.mkdir(parents=True, exist_ok=True)
            text = f"{texts[number]}\n" if folder.name.startswith("notes") else make_document(texts, chance)
            path.write_text(text, encoding="utf-8")
        unfinished.rename(folder)
    return folder


def document_path(folder: Path, number: int) -> Path:
    """Return the path of a document."""
    return folder / f"{number // DOCUMENTS_PER_FOLDER:03}" / f"{number:05}.md"


def make_document(texts: Sequence[str], chance: random.Random) -> str:
    """Return Markdown with a section for each of HEADINGS. A section has texts that are drawn by chance, one a line."""
    sections = []
    for heading in HEADINGS:
        lines: list[str] = []
        while sum(map(len, lines)) < SECTION_CHARACTERS:
            lines.append(chance.choice(texts))
        title = " ".join(lines[0].split()[:QUERY_WORDS])
        sections.append("\n".join([f"{heading} {title}", "", *lines, ""]))
    return "\n".join(sections)


def write_rows(path: Path, texts: Sequence[str]) -> Path:
    """Return a CSV with the columns id, text, initial and characters, written unless it is there."""
    if not path.exists():
        with path.open("w", newline="", encoding="utf-8") as file:
            rows = ((f"t-{number}", text, text[0].lower(), len(text)) for number, text in enumerate(texts))
            csv.writer(file).writerows([("id", "text", "initial", "characters"), *rows])
    return path


def first_index(source: Path, bundle: Path) -> Cost:
    """Return what the first index of a source costs. It is kept in `bundle`, and its cost beside it."""
    kept = bundle.with_name(f"{bundle.name}.first.json")

    def make(out: Path) -> None:
        index(["a text"], bundle.with_name("model"), mode="replace", progress=False)  # the model is in the cache then
        kept.write_text(json.dumps(measure(lambda: run_index(source, out))), encoding="utf-8")

    make_once(bundle, make)
    return Cost(*json.loads(kept.read_bytes()))


def run_index(source: Path, out: Path) -> None:
    """Run `semsearch index` in a process of its own."""
    command: list[str | Path] = [sys.executable, "-m", "semsearch", "index", source, "--out", out]
    subprocess.run(command, cwd=PROJECT, stdout=subprocess.DEVNULL, check=True)


def update_documents(folder: Path, bundle: Path) -> Costs:
    """Return what one update of each kind costs. The first one, which is not counted, brings the bundle up to date."""
    program = [sys.executable, "-m", "bench.update"]
    watched = run_program([*program, "watched", folder, bundle], {"XDG_CACHE_HOME": str(folder.with_name("cache"))})
    in_program = run_program([*program, "documents", folder, bundle])
    same = measure(lambda: run_index(folder, bundle))
    edit(folder)
    edited = measure(lambda: run_index(folder, bundle))
    return {SAME: same, EDITED: edited, **in_program, **watched}


def update_rows(python: Path, table: Path, bundle: Path) -> Costs:
    """Return what one update of each kind costs in a copy of the bundle, and in the stores of the peers.

    python is the interpreter that has the stores.
    """
    copy = bundle.with_name(f"{bundle.name}-copy")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(bundle, copy)
    costs = run_program([sys.executable, "-m", "bench.update", "rows", table, copy])
    embeddings = table.with_suffix(".npy")
    if not embeddings.exists():
        np.save(embeddings, np.concatenate([rows for _, rows in blocks(load_bundle(bundle).index)]))
    for store in STORES:
        place = table.with_name(f"{table.stem}-{store}")
        costs |= run_program([python, "-m", "bench.peers.stores", store, place, table, embeddings])
    return costs


def run_program(command: Sequence[str | Path], variables: Mapping[str, str] | None = None) -> Costs:
    """Return the costs that a program has printed as JSON. It gets these environment variables too."""
    environment = os.environ | dict(variables or {})
    done = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, env=environment, check=True)
    return {kind: Cost(*cost) for kind, cost in json.loads(done.stdout).items()}


def main(kind: str, source: Path, bundle: Path) -> None:
    """Update a bundle in this process, twice in each way, and print what the second time costs."""
    programs = {"documents": edit_and_index, "rows": upsert_and_remove, "watched": watch_and_ask}
    print(json.dumps(programs[kind](source, bundle)))


def watch_and_ask(folder: Path, bundle: Path) -> Costs:
    """Return what the second edited line costs until an agent with --watch answers with it.

    The processor time is that of the process that updates the index, and of its reader. The index is a copy of the
    bundle.
    """
    kept = kept_index(folder)
    shutil.rmtree(kept, ignore_errors=True)
    shutil.copytree(bundle, kept)
    command = [sys.executable, "-m", "semsearch", "mcp", str(folder), "--watch"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as agent:
        ask_until_found(agent, edit(folder))
        time.sleep(SECONDS_UNTIL_STILL)
        before, begin = updating_seconds(agent.pid), time.perf_counter()
        ask_until_found(agent, edit(folder))
        wall = time.perf_counter() - begin
        return {WATCHED: Cost(updating_seconds(agent.pid) - before, wall)}


def ask_until_found(agent: "subprocess.Popen[bytes]", line: str) -> None:
    """Search for a line of a document again and again, until the agent returns it."""
    assert agent.stdin is not None
    assert agent.stdout is not None
    call = {"name": "search", "arguments": {"query": line}}
    found = b""
    while line.encode() not in found:
        time.sleep(SECONDS_BETWEEN_QUESTIONS)
        agent.stdin.write(json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode())
        agent.stdin.write(b"\n")
        agent.stdin.flush()
        while b'"id"' not in (found := agent.stdout.readline()):
            pass


def updating_seconds(process: int) -> float:
    """Return the processor seconds of the processes that a process has started, directly or not."""
    ticks = 0
    for child in children(process):
        *_, ticks_of_child = Path(f"/proc/{child}/stat").read_text().rpartition(")")
        ticks += sum(map(int, ticks_of_child.split()[11:15]))  # utime, stime, and those of its children that ended
    own = ticks / os.sysconf("SC_CLK_TCK")
    return own + sum(map(updating_seconds, children(process)))


def edit_and_index(folder: Path, bundle: Path) -> Costs:
    """Return what it costs to edit a document and to update the index."""

    def act() -> None:
        edit(folder)
        index(folder, out=bundle, progress=False)

    return {EDITED_IN_PROGRAM: measure_second(act)}


def edit(folder: Path) -> str:
    """Replace the last line of the document in the middle of a folder, and return the new one."""
    path = document_path(folder, int(folder.name.partition("-")[2]) // 2)
    *lines, _ = path.read_text(encoding="utf-8").splitlines()
    line = f"This line was edited at {time.time_ns()}."
    path.write_text("\n".join([*lines, line, ""]), encoding="utf-8")
    return line


def upsert_and_remove(table: Path, bundle: Path) -> Costs:
    """Return what it costs to upsert a row in the middle of a table with a new text, and to remove a row."""
    with table.open(newline="", encoding="utf-8") as file:
        rows: list[dict[str, Any]] = list(csv.DictReader(file))
    rows = rows[len(rows) // 2 :]
    row, ids = rows[0] | {"characters": int(rows[0]["characters"])}, iter([row["id"] for row in rows])

    def upsert() -> None:
        index([{**row, "text": f"{row['text']} {time.time_ns()}"}], out=bundle, mode="upsert", progress=False)

    return {
        UPSERTED: measure_second(upsert),
        REMOVED: measure_second(lambda: remove(next(ids), bundle, progress=False)),
    }


def bytes_of(bundle: Path) -> dict[str, int]:
    """Return the bytes of all files of a bundle, and of those that no search needs."""
    found = sum(path.stat().st_size for path in bundle.iterdir())
    needed = sum(file.bytes for file in read_manifest(bundle).files.values()) + (bundle / MANIFEST).stat().st_size
    return {"all": found, "for updates": found - needed}


def table(
    seen: Mapping[str, Mapping[str, Sequence[Cost]]], sizes: Mapping[str, Mapping[str, int]]
) -> tuple[list[str], list[list[str]]]:
    """Return a column for each source, and a row for each kind of update, with the medians of its costs."""
    kinds = dict.fromkeys(kind for costs in seen.values() for kind in costs)
    rows = [[kind, *(_medians(costs.get(kind, ())) for costs in seen.values())] for kind in kinds]
    megabytes = [f"{one['for updates'] / 1e6:,.1f} of {one['all'] / 1e6:,.1f}" for one in sizes.values()]
    return ["processor, wall s", *seen], [*rows, ["MB on disk that no search needs", *megabytes]]


def _medians(costs: Sequence[Cost]) -> str:
    return ", ".join(f"{statistics.median(seconds):,.2f}" for seconds in zip(*costs, strict=True))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
