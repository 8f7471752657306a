"""The scripts of the image's build that make it small and its bytecode whole."""

import importlib.util
import marshal
import os
import py_compile
import runpy
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

import pytest

from function.image.trim import LEFT_OUT
from tests.project import ROOT

MODES = py_compile.PycInvalidationMode


def run_script(name: str, *arguments: object) -> None:
    sys.argv = [name, *map(str, arguments)]
    runpy.run_path(str(ROOT / "function" / "image" / name), run_name="__main__")


@pytest.fixture(autouse=True)
def process(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Undo what a script changes in this process."""
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


def write(source: Path, text: str = "x = 1\n") -> Path:
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text(text, encoding="utf-8")
    return source


def bytecode_of(source: Path) -> Path:
    return Path(importlib.util.cache_from_source(str(source)))


def test_bytecode_is_never_compared_with_its_source_and_names_its_place_in_the_image(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = write(tmp_path / "var" / "task" / "app.py")
    write(tmp_path / "var" / "task" / "inner" / "app.py")
    run_script("bytecode.py", tmp_path)
    assert capsys.readouterr().out == f"2 sources compiled below {tmp_path}\n"
    content = bytecode_of(source).read_bytes()
    assert content[4:8] == (1).to_bytes(4, "little")  # PEP 552: made from a hash, not checked
    assert marshal.loads(content[16:]).co_filename == "/var/task/app.py"


def test_invalid_python_stops_the_build(tmp_path: Path) -> None:
    write(tmp_path / "app.py", "x =\n")
    with pytest.raises(py_compile.PyCompileError, match=r"/app\.py"):
        run_script("bytecode.py", tmp_path)


def compiled(source: Path, mode: MODES = MODES.TIMESTAMP) -> Path:
    py_compile.compile(str(write(source)), invalidation_mode=mode)
    return source


def test_modules_of_the_base_without_valid_bytecode_get_it_below_the_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    library, runtime, root = tmp_path / "library", tmp_path / "runtime", tmp_path / "root"
    lacking = {write(library / "missing.py"), write(library / "json" / "missing.py")}
    for name in ("test", "__pycache__"):
        write(library / name / "unused.py")
    compiled(library / "valid.py")
    os.utime(compiled(library / "hashed.py", MODES.UNCHECKED_HASH), (1, 1))
    lacking |= {older := compiled(library / "older.py"), longer := compiled(library / "longer.py")}
    lacking |= {of_another_python := compiled(library / "of_another_python.py")}
    os.utime(older, (1, 1))
    seen = longer.stat()
    os.utime(write(longer, "x = 10\n"), ns=(seen.st_atime_ns, seen.st_mtime_ns))
    other = bytecode_of(of_another_python)
    other.write_bytes(b"old\n" + other.read_bytes()[4:])
    lacking |= {write(runtime / "awslambdaric" / "__init__.py"), write(runtime / "lone_goose.py")}
    lacking |= {write(runtime / "awslambdaric" / "bootstrap.py", "import colorsys, lone_goose, many_geese.one\n")}
    write(runtime / "many_geese" / "one.py")  # in a package without a file, of which the runtime has none
    write(runtime / "not_imported.py")
    monkeypatch.setenv("LAMBDA_RUNTIME_DIR", str(runtime))
    monkeypatch.setattr(sysconfig, "get_path", {"stdlib": str(library)}.__getitem__)

    run_script("bytecode.py", root, "--base")
    assert capsys.readouterr().out == f"0 sources compiled below {root}\n8 of the base had no valid bytecode\n"
    written = {path for path in root.rglob("*") if path.is_file()}
    assert written == {root / bytecode_of(source).relative_to("/") for source in lacking}
    content = (root / bytecode_of(longer).relative_to("/")).read_bytes()
    assert marshal.loads(content[16:]).co_filename == str(longer)


def test_the_parts_that_are_never_imported_are_deleted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for pattern in LEFT_OUT:
        name = pattern.replace("**", "numpy").replace("*", "x")
        write(tmp_path / name / "file" if "." not in name else tmp_path / name, "x" * 1000)
    write(tmp_path / "numpy" / "tests" / "tests" / "file", "x" * 1000)  # is gone when its own turn comes
    write(tmp_path / "numpy" / "types.h", "x" * 20_000)
    kept = write(tmp_path / "numpy" / "random" / "kept.py", "x" * 50_000)
    run_script("trim.py", tmp_path)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [kept]
    assert capsys.readouterr().out == "0.04 MB less\n"


def test_packages_that_have_moved_their_files_stop_the_build(tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match=r"nothing matches bin, expected a file; correct function/image/trim\.py"):
        run_script("trim.py", tmp_path)
