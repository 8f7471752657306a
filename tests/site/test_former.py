"""The files of a site's former build, which stay beside those of the new one."""

import re
import shutil
from pathlib import Path

import pytest

from semsearch.engine.bundle import BundleError
from semsearch.indexing.corpus import Corpus
from semsearch.indexing.keywords import KeywordOptions
from semsearch.site.former import copy_former
from semsearch.site.site import FORMER, write_site
from tests.browser.site.world import write_site_bundle
from tests.command_line import run

TEXTS = ("An angry goose", "The night nurse", "A lost key")


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Bundles of different texts, whose vocabulary is the same."""
    folder: Path = tmp_path_factory.mktemp("bundles")
    return [
        write_site_bundle(folder / str(number), Corpus([text], ["a"], ["{}"]), KeywordOptions(stemming=None))
        for number, text in enumerate(TEXTS)
    ]


@pytest.fixture(scope="module")
def alone(bundles: list[Path], npm: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """The site of each bundle, in a folder of its own."""
    folder: Path = tmp_path_factory.mktemp("alone")
    for number, bundle in enumerate(bundles):
        write_site(bundle, folder / str(number), packages=npm)
    return [folder / str(number) for number in range(len(bundles))]


def files(site: Path) -> dict[str, bytes]:
    """Return all files of a site by their paths."""
    return {str(path.relative_to(site)): path.read_bytes() for path in site.rglob("*") if path.is_file()}


def hashed(site: Path) -> dict[str, bytes]:
    """Return the files of a site whose paths have a hash."""
    return {name: content for name, content in files(site).items() if "/" in name}


def test_a_site_has_the_files_of_the_build_before_it_and_of_no_older_one(
    bundles: list[Path], alone: list[Path], npm: Path, tmp_path: Path
) -> None:
    assert FORMER not in write_site(bundles[0], tmp_path, packages=npm)
    for number in (1, 2):
        sizes = write_site(bundles[number], tmp_path, packages=npm)
        former, own = hashed(alone[number - 1]), files(alone[number])
        assert files(tmp_path) == own | former
        assert sizes[FORMER] == sum(len(former[name]) for name in former.keys() - own.keys())
        assert former.keys() & own.keys()  # such as the vocabulary


def test_the_same_build_again_keeps_the_former_one(
    bundles: list[Path], alone: list[Path], npm: Path, tmp_path: Path
) -> None:
    for number in (0, 1, 1, 1):
        write_site(bundles[number], tmp_path, packages=npm)
    assert files(tmp_path) == files(alone[1]) | hashed(alone[0])
    write_site(bundles[0], tmp_path, packages=npm)  # as after a revert
    assert files(tmp_path) == files(alone[0]) | hashed(alone[1])


def test_a_folder_keeps_a_build_for_a_site_that_is_written_into_an_empty_folder(
    bundles: list[Path], alone: list[Path], npm: Path, tmp_path: Path
) -> None:
    out, keep = tmp_path / "out", tmp_path / "cache" / "site"
    for number in (0, 1, 1, 2):
        write_site(bundles[number], out, packages=npm, keep=keep)
        expected = files(alone[number])
        if number:
            expected |= hashed(alone[number - 1])
        assert files(out) == expected
        assert files(keep) == hashed(out) | {"search.js": expected["search.js"]}
        shutil.rmtree(out)


def test_an_older_site_in_the_output_folder_goes_before_the_kept_build(
    bundles: list[Path], alone: list[Path], npm: Path, tmp_path: Path
) -> None:
    out, keep = tmp_path / "out", tmp_path / "keep"
    shutil.copytree(alone[0], out)
    shutil.copytree(alone[1], keep)
    write_site(bundles[2], out, packages=npm, keep=keep)
    assert files(out) == files(alone[2]) | hashed(alone[0])


def test_a_kept_folder_with_something_else_is_refused_and_stays_as_it_is(
    bundles: list[Path], npm: Path, tmp_path: Path
) -> None:
    keep = tmp_path / "keep"
    keep.mkdir()
    (keep / "thesis.txt").write_text("mine")
    with pytest.raises(BundleError, match=r"keep: holds thesis\.txt, expected a new folder or an older site"):
        write_site(bundles[0], tmp_path / "out", packages=npm, keep=keep)
    assert files(keep) == {"thesis.txt": b"mine"}
    assert not (tmp_path / "out").exists()


def test_what_a_stopped_run_left_in_the_kept_folder_does_not_refuse_the_next(
    bundles: list[Path], npm: Path, tmp_path: Path
) -> None:
    (tmp_path / "keep" / ".site-abc").mkdir(parents=True)
    write_site(bundles[0], tmp_path / "out", packages=npm, keep=tmp_path / "keep")
    assert (tmp_path / "keep" / "search.js").is_file()


def test_no_file_of_the_former_build_stays_if_they_have_one_byte_too_many(alone: list[Path], tmp_path: Path) -> None:
    code = f"code/{next((alone[1] / 'code').iterdir()).name}"
    former, own = hashed(alone[0]), files(alone[1])
    total = sum(len(former[name]) for name in former.keys() - own.keys())
    for most_bytes, copied, expected in ((total, total, own | former), (total - 1, 0, own)):
        site = tmp_path / str(most_bytes)
        shutil.copytree(alone[1], site)
        assert copy_former(alone[0], site, code, most_bytes) == copied
        assert files(site) == expected


def test_a_build_whose_search_js_loads_another_file_is_a_former_one_too(alone: list[Path], tmp_path: Path) -> None:
    """As those before this version did."""
    last, site = tmp_path / "last", tmp_path / "site"
    shutil.copytree(alone[0], last)
    shutil.copytree(alone[1], site)
    (code,) = (last / "code").iterdir()
    (last / "search.js").write_text(f'export * from "./code/{code.name}/search.js";\n')
    copy_former(last, site, f"code/{next((site / 'code').iterdir()).name}")
    assert files(site) == files(alone[1]) | hashed(alone[0])


def test_the_command_keeps_a_build_and_prints_the_bytes_of_the_former_one(
    bundles: list[Path], npm: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write(number: int, out: str) -> tuple[str, str]:
        done = run("site", bundles[number], "--out", tmp_path / out, "--packages", npm, "--keep", tmp_path / "keep")
        assert done.code == 0
        return done.out, done.err

    printed, _ = write(0, "first")
    assert FORMER not in printed
    printed, warned = write(1, "second")
    assert re.search(r"^former +0\.\d MB  for visitors who came before", printed, re.MULTILINE)
    assert "warning" not in warned
    assert len([*(tmp_path / "second" / "code").iterdir()]) == 2
    monkeypatch.setattr("semsearch.site.site.copy_former", lambda *_: 0)  # as if they were more than 100 MB
    printed, warned = write(2, "third")
    assert FORMER not in printed
    assert "warning: more than 100 MB of the last build are not in this one, so none of them stays" in warned
