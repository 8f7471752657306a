"""A folder of documents that changes: a site of Docusaurus with versions, translations, a partial and HTML pages."""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from pathlib import Path
from random import Random
from typing import Any

from semsearch import IndexSummary, index
from tests.indexing.changes.words import other, sentence

CONFIG = "docusaurus.config.js"
VERSIONS = "versions.json"
ORIGINAL = "static/original.html"
FRENCH = "i18n/fr/docusaurus-plugin-content-docs/current/intro.md"
GERMAN = FRENCH.replace("/fr/", "/de/")
NEWS = "blog/2024-01-02-news.md"
PUBLISHED = date(2900, 1, 1)  # the day on which a page appears
NOT_UTF_8 = b"caf\xe9"
OPTIONS: Mapping[str, list[Any]] = {
    "passage_tokens": [30, 12],
    "base_url": ["", "https://x.org/"],
    "exclude": [(), ("guide/*",)],
    "include": [(), ("*.js",)],
    "drafts": [False, True],
    "keywords": [True, False],
    "stem": [None, "german"],
    "title": ["", "Stories"],
}


class Site:
    """The folder, the day, and the options of its index. `random_change` changes one of them."""

    def __init__(self, folder: Path, choose: Random) -> None:
        self.folder, self.choose = folder, choose
        self.options = {name: values[0] for name, values in OPTIONS.items()}
        self.today = date.today()
        self._readable: dict[str, bytes] = {}  # what pages had that cannot be read now
        self._write(CONFIG, "export default {};\n")
        self._write(VERSIONS, '["1.0"]')
        for name in ("docs/intro.md", "docs/guide/walk.md", "versioned_docs/version-1.0/intro.md", "notes.txt"):
            self._write(name, self._page())
        for name in (FRENCH, GERMAN):
            self._write(name, self._page())
        self._write("docs/_partial.mdx", sentence(choose))
        self._write("docs/parts.mdx", f"import Part from './_partial.mdx'\n\n{self._page()}\n\n<Part />\n")
        self._write(NEWS, f"---\npublishDate: {PUBLISHED}\n---\n{self._page()}")
        self._write(ORIGINAL, f"<h1>{sentence(choose)}</h1><p>{sentence(choose)}</p>")
        self._write("static/copy.html", f"<link rel=canonical href=/{ORIGINAL}><h1>{sentence(choose)}</h1>")

    def update(self, out: Path) -> IndexSummary:
        """Index the folder."""
        make: Callable[..., IndexSummary] = index
        return make(self.folder, out=out, progress=False, **self.options)

    def make_fresh(self, out: Path) -> IndexSummary:
        """Index what is in the folder, and what was in those files that cannot be read now, in an empty index."""
        copy = Path(shutil.copytree(self.folder, out.with_name("texts") / self.folder.name))
        for name, content in self._readable.items():
            (copy / name).write_bytes(content)
        make: Callable[..., IndexSummary] = index
        return make(copy, out=out, progress=False, **self.options)

    # --- changes of one page

    def edit_a_line(self) -> str:
        """Replace a line of a page, or let another one follow it."""
        name = self._any_page()
        lines = (self.folder / name).read_text().split("\n")
        line = self.choose.randrange(len(lines) // 2, len(lines))
        lines[line : line + self.choose.randint(0, 1)] = ["", sentence(self.choose), ""]
        self._write(name, "\n".join(lines))
        return name

    def edit_without_a_trace(self) -> str:
        """Replace a word of a page by one of the same length, and keep the file's time, as some deployments do."""
        name = self._any_page()
        path = self.folder / name
        state, text = path.stat(), path.read_text()
        words = ("goose", "ferry") if "goose" in text else ("baker", "judge")
        path.write_text(text.replace(*words) if words[0] in text else text.replace("the", "her"))
        os.utime(path, ns=(state.st_atime_ns, state.st_mtime_ns))
        return name

    def touch(self) -> str:
        """Write a page again with what it has."""
        name = self._any_page()
        self._write(name, (self.folder / name).read_text())
        return name

    def add_a_page(self) -> str:
        """Write a page in one of the folders, or over another one."""
        name = f"docs/{self.choose.choice(['', 'guide/', 'more/'])}{self.choose.choice('abc')}.md"
        self._write(name, self._page())
        return name

    def delete_a_page(self) -> str:
        """Delete a page, unless only a few are left."""
        if len(self._pages()) < 5:
            return "none"
        name = self._any_page()
        (self.folder / name).unlink()
        return name

    def rename_a_page(self) -> str:
        """Rename a page, or move it into another folder."""
        name = self._any_page()
        folder = self.choose.choice([Path(name).parent.as_posix(), "docs/guide", "docs/more"])
        renamed = f"{folder}/{self.choose.randint(1, 99)}-{Path(name).name[-12:]}"
        (self.folder / renamed).parent.mkdir(exist_ok=True)
        (self.folder / name).rename(self.folder / renamed)
        return f"{name} to {renamed}"

    def repeat_a_page(self) -> str:
        """Copy a page."""
        name = self._any_page()
        self._write("docs/twin.md", (self.folder / name).read_text())
        return f"{name} as docs/twin.md"

    def break_or_repair_a_page(self) -> str:
        """Write what no reader can read in the place of a page, or write the page again."""
        if self._readable:
            return self._repair()
        return self.break_page(self._any_page(but=(FRENCH, GERMAN)))

    def break_page(self, name: str) -> str:
        """Write what no reader can read in the place of a page, whose older passages stay then."""
        self._readable[name] = (self.folder / name).read_bytes()
        (self.folder / name).write_bytes(NOT_UTF_8)
        return name

    def empty_or_fill_a_page(self) -> str:
        """Remove what a page has, or write a page there."""
        is_empty = (self.folder / "docs/filled.md").exists() and not (self.folder / "docs/filled.md").read_text()
        self._write("docs/filled.md", self._page() if is_empty else "")
        return "fill" if is_empty else "empty"

    def change_the_front_matter(self) -> str:
        """State a title and other fields in a page, some of another type than in other pages, or none."""
        fields = {
            "title": self.choose.choice([None, "Geese", sentence(self.choose)]),
            "rating": self.choose.choice([None, 1, 300, 2.5, "good"]),
            "audience": self.choose.choice([None, "all", ["all", "few"]]),
            "draft": self.choose.choice([None, None, True, False]),
        }
        name = self._any_page(suffix=".md")
        text = (self.folder / name).read_text().rpartition("---\n")[2]
        stated = "".join(f"{field}: {json.dumps(value)}\n" for field, value in fields.items() if value is not None)
        self._write(name, f"---\n{stated}---\n{text}")
        return f"{name}: {stated!r}"

    # --- changes with an effect on other pages

    def change_the_partial(self) -> str:
        """Write another text into the partial of an MDX page."""
        self._repair()
        text = sentence(self.choose)
        self._write("docs/_partial.mdx", text)
        return text

    def delete_or_write_the_original(self) -> str:
        """Delete the page that another one is a copy of, which then appears, or write it again."""
        if (self.folder / ORIGINAL).exists():
            (self.folder / ORIGINAL).unlink()
            return "delete"
        self._write(ORIGINAL, f"<h1>{sentence(self.choose)}</h1>")
        return "write"

    def pass_a_day_of_publishing(self) -> str:
        """Let the day after the publishDate of a page be today, or publish the page later."""
        self._repair()
        day = PUBLISHED
        if self.today > PUBLISHED:
            day = self.today = self.today + timedelta(2)
            self._write(NEWS, f"---\npublishDate: {day + timedelta(1)}\n---\n{self._page()}")
        else:
            self.today = PUBLISHED + timedelta(1)
        return str(self.today)

    def add_or_delete_a_translation(self) -> str:
        """Add or delete the only French page, without which one language is left."""
        if (self.folder / FRENCH).exists():
            (self.folder / FRENCH).unlink()
            return "delete"
        self._write(FRENCH, self._page())
        return "add"

    def release_a_version(self) -> str:
        """State another list of versions, so that other pages have the addresses without one."""
        self._repair()
        versions = self.choose.choice(['["1.0"]', '["2.0", "1.0"]', "[]"])
        self._write(VERSIONS, versions)
        return versions

    def begin_or_end_docusaurus(self) -> str:
        """Write or delete the file that says that the folder is a site of Docusaurus."""
        self._repair()
        if (self.folder / CONFIG).exists():
            (self.folder / CONFIG).unlink()
            return "end"
        self._write(CONFIG, "export default {};\n")
        return "begin"

    def ignore_pages(self) -> str:
        """State which pages are not read."""
        self._repair()
        rules = self.choose.choice(["", "guide/\n", "*.txt\n", "a.md\n!docs/a.md\n"])
        self._write(".gitignore", rules)
        return repr(rules)

    def change_an_option(self) -> str:
        """Choose another value of an option."""
        self._repair()
        name = self.choose.choice([*OPTIONS])
        self.options[name] = other(self.choose, OPTIONS[name], self.options[name])
        return f"{name}={self.options[name]!r}"

    # ---

    def _page(self) -> str:
        """Return a page with headings, marks and code, each sometimes, and with a long passage sometimes."""
        choose = self.choose
        pieces = [f"# {sentence(choose)}"]
        for _ in range(choose.randint(0, 2)):
            pieces += [f"{'#' * choose.randint(2, 3)} {sentence(choose)}", sentence(choose)]
            pieces.append(
                choose.choice(["", f"**{sentence(choose)}**", f"```\n{sentence(choose)}\n```", "- one\n- two"])
            )
        return "\n\n".join(filter(None, pieces))

    def _pages(self) -> list[str]:
        """Return the pages that can be read and are no partial."""
        files = [path for path in self.folder.rglob("*") if path.suffix in (".md", ".mdx", ".txt")]
        names = (path.relative_to(self.folder).as_posix() for path in files if not path.name.startswith("_"))
        return sorted(name for name in names if name not in self._readable)

    def _any_page(self, suffix: str = "", but: tuple[str, ...] = ()) -> str:
        return self.choose.choice([name for name in self._pages() if name.endswith(suffix) and name not in but])

    def _repair(self) -> str:
        """Write the pages again that cannot be read, because their older passages stay as they are."""
        repaired = [*self._readable]
        for name, content in self._readable.items():
            (self.folder / name).write_bytes(content)
        self._readable.clear()
        return f"repair {repaired}"

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        self._readable.pop(name, None)


CHANGES: tuple[Callable[[Site], str], ...] = (
    Site.edit_a_line,
    Site.edit_without_a_trace,
    Site.touch,
    Site.add_a_page,
    Site.delete_a_page,
    Site.rename_a_page,
    Site.repeat_a_page,
    Site.break_or_repair_a_page,
    Site.empty_or_fill_a_page,
    Site.change_the_front_matter,
    Site.change_the_partial,
    Site.delete_or_write_the_original,
    Site.pass_a_day_of_publishing,
    Site.add_or_delete_a_translation,
    Site.release_a_version,
    Site.begin_or_end_docusaurus,
    Site.ignore_pages,
    Site.change_an_option,
)
TWO_WAYS = (
    Site.break_or_repair_a_page,
    Site.empty_or_fill_a_page,
    Site.delete_or_write_the_original,
    Site.pass_a_day_of_publishing,
    Site.add_or_delete_a_translation,
    Site.begin_or_end_docusaurus,
)
# Changes with an effect in another process too, which has a day of its own
LASTING = tuple(change for change in CHANGES if change is not Site.pass_a_day_of_publishing)
