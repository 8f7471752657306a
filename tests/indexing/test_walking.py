"""Which entries of a folder are read."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from semsearch.indexing.walking import (
    BUILT,
    BUNDLE,
    DOTTED,
    LINKED_OUT,
    NAMED_BY_RULE,
    REPEATED,
    SPECIAL,
    STATIC_SITE,
    UNDERSCORED,
    WalkRules,
    find_above,
    walk,
)
from tests.indexing.test_first_version import FIRST


def write_all(folder: Path, files: dict[str, str]) -> None:
    """Write files, whose folders are made."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


def read_files(root: Path, rules: WalkRules) -> set[str]:
    return {Path(path).relative_to(root).as_posix() for path in walk(root, rules)}


RULES = {
    ".gitignore": "*.log\n/private/\ndrafts/**\n!keep.log\n",
    "docs/.gitignore": "\\\n!a.log\nlocal.md\n",
    "docs/.ignore": "*.txt\n",
    "some/.gitignore": "*\n!*/\n!*.md\n!.gitignore\n\\\n",
    "some/deep/a.md": "", "some/deep/a.png": "", "some/deep/er/a.md": "", "some/deep/er/a.png": "",
    "only/.gitignore": "*/\n!a/\n", "only/a.md": "", "only/a/b.md": "", "only/a/c/d.md": "", "only/e/f.md": "",
    "a.log": "", "keep.log": "", "private/a.md": "", "drafts/a.md": "",
    "docs/a.log": "", "docs/b.log": "", "docs/local.md": "", "docs/private/a.md": "", "docs/a.txt": "", "docs/a.md": "",
    "docs/deep/local.md": "", "docs/deep/b.md": "",
}  # fmt: skip


def test_ignore_files_leave_out_what_git_leaves_out(tmp_path: Path) -> None:
    write_all(tmp_path, RULES)
    subprocess.run(["git", "init", "--quiet", tmp_path], check=True)
    command = ["git", "-C", str(tmp_path), "ls-files", "--others", "--exclude-per-directory=.gitignore"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    expected = {name for name in listed if not name.endswith((".txt", "ignore"))}  # git does not read .ignore
    assert read_files(tmp_path, WalkRules(tmp_path)) == expected
    assert {"docs/a.log", "docs/private/a.md"} < expected


def test_a_rule_is_about_a_name_in_nfc_and_in_nfd(tmp_path: Path) -> None:
    write_all(
        tmp_path, {".gitignore": "caf\u00e9/\nkeke\u0301.md\n", "cafe\u0301/a.md": "", "kek\u00e9.md": "", "a.md": ""}
    )
    assert read_files(tmp_path, WalkRules(tmp_path)) == {"a.md"}


def test_rules_above_the_named_folder_count_for_what_is_below_it(tmp_path: Path) -> None:
    rules = "/docs/\n*.log\nsite/\n"
    write_all(tmp_path, {".git/HEAD": "", ".gitignore": rules, "docs/a.md": "", "docs/a.log": "", "docs/site/a.md": ""})
    write_all(tmp_path, {"site/index.html": "", "site/a.log": "", "site/build/a.html": "", "site/package.json": ""})
    assert read_files(tmp_path, WalkRules(tmp_path)) == set()
    assert read_files(tmp_path / "docs", WalkRules(tmp_path / "docs")) == {"a.md"}
    built = {"index.html", "a.log", "build/a.html", "package.json"}
    assert read_files(tmp_path / "site", WalkRules(tmp_path / "site")) == built


def test_links_that_lead_out_of_the_folder_are_followed_if_that_is_wanted_and_loops_end(tmp_path: Path) -> None:
    root = tmp_path / "docs"
    write_all(tmp_path, {"docs/a.md": "", "docs/deep/b.md": "", "private/c.md": "", "d.md": ""})
    (root / "linked").symlink_to(tmp_path / "private")
    (root / "linked.md").symlink_to("../d.md")
    (root / "inside.md").symlink_to("a.md")
    (root / "deep" / "loop").symlink_to(root)
    (tmp_path / "private" / "loop").symlink_to(root / "linked")
    rules = WalkRules(root)
    assert [rules.leads_out(str(root / name)) for name in ("linked", "linked.md", "inside.md")] == [True, True, False]
    inside = {"a.md", "deep/b.md"}  # inside.md is a.md
    assert read_files(root, rules) == inside
    assert read_files(root, WalkRules(root, follow_symlinks=True)) == inside | {"linked.md", "linked/c.md"}


def test_a_file_that_was_read_by_a_link_is_not_read_again_in_its_folder(tmp_path: Path) -> None:
    write_all(tmp_path, {"docs/a.md": "", "other/b.md": "", "other/c.md": ""})
    (tmp_path / "docs" / "1.md").symlink_to("../other/b.md")
    (tmp_path / "docs" / "2").symlink_to("../other")
    root = tmp_path / "docs"
    skipped: list[tuple[str, str]] = []
    rules = WalkRules(root, follow_symlinks=True)
    read = walk(
        root, rules, skip=lambda reason, path: skipped.append((reason, Path(path).relative_to(root).as_posix()))
    )
    assert [Path(path).relative_to(root).as_posix() for path in read] == ["a.md", "1.md", "2/c.md"]
    assert skipped == [(REPEATED, "2/b.md")]


def test_a_site_that_searches_is_read_if_it_is_named_and_skipped_below(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.md": "", "site/a.html": "", "site/code/a.js": "", "site/data/a.bin": ""})
    write_all(tmp_path, {"site/service-worker.js": ""})
    assert read_files(tmp_path, WalkRules(tmp_path)) == {"a.md"}
    assert "a.html" in read_files(tmp_path / "site", WalkRules(tmp_path / "site"))


def test_each_entry_that_is_not_read_is_told_with_its_reason(tmp_path: Path) -> None:
    root, other = tmp_path / "root", tmp_path / "other"
    files = ["a.md", "b/c.md", ".hidden/d.md", "_static/e.md", "ignored.md", "node_modules/f.md", "site/g.html"]
    write_all(root, dict.fromkeys(files, ""))
    write_all(root, {".gitignore": "ignored.md", "site/code/x": "", "site/data/x": "", "site/service-worker.js": ""})
    write_all(other, {"h.md": ""})
    os.mkfifo(root / "pipe")
    os.mkfifo(other / "pipe")
    (root / "again.md").symlink_to("a.md")
    (root / "out").symlink_to(other)
    (root / "outer-pipe").symlink_to(other / "pipe")
    (root / "nowhere").symlink_to("gone")
    shutil.copytree(FIRST, root / "bundle")
    skipped: dict[str, str] = {}
    failed: dict[str, str] = {}

    def walk_root(*, follow_symlinks: bool) -> list[str]:
        def skip(reason: str, path: str) -> None:
            skipped[os.path.relpath(path, root)] = reason

        def fail(path: str, error: OSError) -> None:
            failed[os.path.relpath(path, root)] = type(error).__name__

        skipped.clear()
        failed.clear()
        rules = WalkRules(root, follow_symlinks=follow_symlinks)
        return sorted(os.path.relpath(path, root) for path in walk(root, rules, skip=skip, fail=fail))

    assert walk_root(follow_symlinks=False) == ["a.md", "b/c.md"]
    inside = {
        ".gitignore": DOTTED,
        ".hidden": DOTTED,
        "_static": UNDERSCORED,
        "again.md": REPEATED,
        "bundle": BUNDLE,
        "ignored.md": NAMED_BY_RULE,
        "node_modules": BUILT,
        "pipe": SPECIAL,
        "site": STATIC_SITE,
    }
    assert skipped == inside | {"out": LINKED_OUT, "outer-pipe": LINKED_OUT}
    assert failed == {"nowhere": "FileNotFoundError"}
    assert walk_root(follow_symlinks=True) == ["a.md", "b/c.md", "out/h.md"]
    assert skipped == inside | {"out/pipe": SPECIAL, "outer-pipe": SPECIAL}


ENTRIES = {  # an entry of a folder beside these files, and why it is not read
    "packages": ("node_modules/a.md", ["package.json"], BUILT),
    "a virtual environment": ("env/a.md", ["env/pyvenv.cfg"], BUILT),
    "build output": ("build/a.html", ["package.json"], BUILT),
    "a chapter about builds": ("build/a.md", [], None),
    "the output of MkDocs": ("site/a.html", ["mkdocs.yml"], BUILT),
    "the output of Sphinx": ("_build/html/a.html", ["conf.py"], BUILT),
    "sources of Sphinx": ("_static/a.html", [], UNDERSCORED),
    "a page of Hugo": ("posts/_index.md", [], None),
    "a post of Jekyll": ("_posts/2026-01-02-a.md", ["_config.yml"], None),
    "a layout of Jekyll": ("_layouts/a.html", ["_config.yml"], UNDERSCORED),
    "a draft of Jekyll": ("_drafts/a.md", ["_config.yml"], UNDERSCORED),
    "a partial of Docusaurus": ("docs/_part.mdx", ["docusaurus.config.ts"], UNDERSCORED),
    "a hidden folder": (".obsidian/a.md", [], DOTTED),
}


@pytest.mark.parametrize("case", ENTRIES)
def test_an_entry_that_its_generator_makes_no_page_of_is_left_out(case: str, tmp_path: Path) -> None:
    name, others, reason = ENTRIES[case]
    write_all(tmp_path, dict.fromkeys([name, *others], ""))
    assert (name in read_files(tmp_path, WalkRules(tmp_path))) == (reason is None)
    folder, _, below = name.rpartition("/") if reason is None else ("", "", name.partition("/")[0])
    if case.endswith("Docusaurus"):
        folder, below = "docs", "_part.mdx"
    assert WalkRules(tmp_path).reasons(str(tmp_path / folder), [below], others).get(below) == reason


def test_what_is_ignored_is_read_if_it_is_asked_for(tmp_path: Path) -> None:
    write_all(
        tmp_path, {".git/HEAD": "", ".gitignore": "a.md", "a.md": "", "node_modules/b.md": "", "_drafts/c.md": ""}
    )
    assert read_files(tmp_path, WalkRules(tmp_path, ignore=False)) == {"a.md", "node_modules/b.md"}
    assert read_files(tmp_path, WalkRules(tmp_path, drafts=True)) == {"_drafts/c.md"}


def test_a_file_above_is_looked_for_up_to_the_root_of_the_repository(tmp_path: Path) -> None:
    write_all(tmp_path, {"a.toml": "", "repository/.git/HEAD": "", "repository/b.toml": "", "repository/c/d/x": ""})
    (tmp_path / "repository" / "c" / "e.toml").mkdir()
    folder = tmp_path / "repository" / "c" / "d"
    assert find_above(folder, ["b.toml"]) == find_above(folder, ["none", "b.toml"]) == tmp_path / "repository"
    assert find_above(tmp_path / "repository", ["b.toml"]) == tmp_path / "repository"
    for name in ("a.toml", "e.toml", "none"):
        assert find_above(folder, [name]) is None
    assert find_above(tmp_path, ["a.toml"]) == tmp_path


@pytest.mark.parametrize(
    ("repository", "root", "read"),
    [
        (".git", "docs", {"a.md"}),
        ("docs/.git", "docs", {"a.md", "b.log", "keep/c.log"}),  # its own repository
        ("none", "docs", {"a.md", "b.log", "keep/c.log"}),
        (".git", "docs/keep", {"c.log"}),  # a rule between says so
    ],
)
def test_rules_above_count_up_to_the_root_of_the_repository(
    repository: str, root: str, read: set[str], tmp_path: Path
) -> None:
    write_all(tmp_path, {f"{repository}/HEAD": "", ".gitignore": "*.log\n", "docs/a.md": "", "docs/b.log": ""})
    write_all(tmp_path, {"docs/keep/c.log": ""})
    if root == "docs/keep":
        write_all(tmp_path, {"docs/.ignore": "!c.log\n"})
    assert read_files(tmp_path / root, WalkRules(tmp_path / root)) == read
