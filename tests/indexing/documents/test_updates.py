"""An update of a folder of documents is what a fresh index of it is, whatever has changed."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

from semsearch import IndexSummary, Search, index
from tests.command_line import contents

CHANGES = 15
WORDS = [
    "goose",
    "duck",
    "heron",
    "lake",
    "pond",
    "river",
    "reed",
    "nest",
    "egg",
    "feather",
    "wing",
    "beak",
    "water",
    "grass",
]


def sentence(choose: random.Random) -> str:
    return " ".join(choose.choices(WORDS, k=choose.randint(3, 12))).capitalize() + "."


def page(choose: random.Random) -> str:
    """Return a page with front matter, headings, marks, comments and code, each sometimes."""
    front = choose.choice(["", f"---\ntitle: {sentence(choose)}\ntags: [{choose.choice(WORDS)}]\n---\n"])
    pieces = [f"# {sentence(choose)}"]
    for _ in range(choose.randint(1, 4)):
        level = "#" * choose.randint(2, 3)
        pieces += [f"{level} {sentence(choose)}", choose.choice([sentence(choose), "", f"**{sentence(choose)}**"])]
        pieces.append(choose.choice([f"<!-- {sentence(choose)} -->", f"```\n{sentence(choose)}\n```", "- one\n- two"]))
    return front + "\n\n".join(pieces)


def change(folder: Path, options: dict[str, object], choose: random.Random) -> None:
    """Make one random change of a folder, or of the options of its index."""
    pages = sorted(folder.rglob("*.md"))
    one = choose.choice(pages)
    match choose.choice(["add", "edit", "rename", "delete", "ignore", "draft", "option"]):
        case "add":
            path = folder / choose.choice(WORDS) / f"{choose.choice(WORDS)}.md"
            path.parent.mkdir(exist_ok=True)
            path.write_text(page(choose))
        case "edit":
            one.write_text(one.read_text() + f"\n\n{sentence(choose)}")
        case "rename":
            one.rename(one.with_name(f"{choose.choice(WORDS)}-{choose.randint(1, 99)}.md"))
        case "delete" if len(pages) > 2:
            one.unlink()
        case "ignore":
            (folder / ".gitignore").write_text(choose.choice(["", f"{choose.choice(WORDS)}*.md\n"]))
        case "draft":
            one.write_text(f"---\ndraft: {choose.choice(['true', 'false'])}\n---\n{page(choose)}")
        case "option":
            options["passage_tokens"] = choose.choice([20, 60])
            options["base_url"] = choose.choice(["", "https://x.org/docs"])


def test_an_update_equals_a_fresh_index_after_each_of_many_changes(bundle_copy: Path, tmp_path: Path) -> None:
    choose = random.Random(7)
    folder, fresh = tmp_path / "docs", tmp_path / "fresh"
    folder.mkdir()
    for name in ("index", "a", "b"):
        (folder / f"{name}.md").write_text(page(choose))
    options: dict[str, object] = {"passage_tokens": 60, "base_url": ""}
    make: Callable[..., IndexSummary] = index
    others = shutil.copytree(bundle_copy, tmp_path / "others")  # a bundle of other texts, whose model embeds these
    make(folder, out=bundle_copy, mode="replace", progress=False, **options)
    embedded = 0
    for _ in range(CHANGES):
        change(folder, options, choose)
        made = make(folder, out=bundle_copy, progress=False, **options)
        embedded += made.rows.embedded
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(others, fresh)
        make(folder, out=fresh, mode="replace", progress=False, **options)
        assert contents(bundle_copy) == contents(fresh)
        query = sentence(choose)
        assert Search(bundle_copy).search(query) == Search(fresh).search(query)
    assert embedded < CHANGES * made.manifest.corpus.rows / 4  # most passages keep their embeddings
