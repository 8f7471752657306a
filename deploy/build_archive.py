"""Write the archive of the modules that the function imports: `python -m deploy.build_archive`, an image's last step.

It runs with the interpreter and in the folder of the function in the image. function/archive.py describes the file.
"""

import argparse
import json
import marshal
import subprocess
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import CodeType
from zlib import crc32

from deploy.replacements import KINDS, compile_module
from function.archive import ARCHIVE, Modules, Snippets

# Prints the modules that a start and the FastAPI app import, and the sources of the snippets that they run.
# function.handler itself needs a bundle, and there can be none yet. So this imports the same modules, and sends
# GET /health to an app without a bundle.
WATCH = """
import json, sys
import function.archive as archive
before, snippets = set(sys.modules), {}
def run_snippet(source, names, local_names):
    snippets[source] = None
    exec(source, names, local_names)
archive.run_snippet = run_snippet
archive.use_archive(sys.argv[1])
import concurrent.futures.thread
from types import SimpleNamespace
from function.engine.loading import LoadedBundle
from function.app import create_app
from function.events import make_handler
from function.settings import Settings
from function.startup import WARM_UP, ColdStart
from function.telemetry import make_logger
embedder = SimpleNamespace(model=SimpleNamespace(max_tokens=1))
bundle = LoadedBundle(manifest=None, embedder=embedder, index=None, passages=None, folder=None)
app = create_app(bundle, Settings(), make_logger(Settings()), ColdStart(print))
health = {**WARM_UP, "requestContext": {"http": {"method": "GET", "path": "/health", "sourceIp": "127.0.0.1"}}}
assert make_handler(app, "/")(health, None)["statusCode"] == 200
import function.fastapi_app, pydantic.v1
modules = {}
for name in list(sys.modules):
    origin = getattr(getattr(sys.modules[name], "__spec__", None), "origin", None) or ""
    if name not in before and origin.endswith(".py") and name.partition(".")[0] != "function":
        modules[name] = [origin, hasattr(sys.modules[name], "__path__")]
import numpy
print(json.dumps([modules, list(snippets), numpy.__file__]))
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path(ARCHIVE), help="default: beside function/archive.py")
    parser.add_argument("--without", action="append", choices=KINDS, default=[], help="leave a replacement out")
    options = parser.parse_args(arguments)
    count = build_archive(options.out, options.without)
    print(f"{options.out}: {count} modules, {options.out.stat().st_size:,} bytes")
    return 0


def build_archive(out: Path, without: Collection[str] = ()) -> int:
    """Write the archive and return the number of its modules.

    The first run has no archive and finds the files of the modules. The second has one with the replacements, and finds
    the modules that are still imported with them.
    """
    modules, _, numpy_file = _watch(out, "none")
    packages = Path(numpy_file).parents[1]
    write_archive(out, modules, (), packages, without)
    modules, snippets, _ = _watch(out, str(out))
    if "dataclasses" in without:
        snippets = []
    return write_archive(out, modules, snippets, packages, without)


def _watch(out: Path, archive: str) -> tuple[dict[str, tuple[str, bool]], list[str], str]:
    folder = Path(ARCHIVE).parents[1]
    command = [sys.executable, "-c", WATCH, archive]
    done = subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True)
    modules, snippets, numpy_file = json.loads(done.stdout.splitlines()[-1])
    return modules, snippets, numpy_file


def write_archive(
    out: Path,
    modules: Mapping[str, tuple[str, bool]],
    snippets: Iterable[str],
    packages: Path,
    without: Collection[str] = (),
) -> int:
    """Write these modules {name: (source file, is a package)} and snippets; return the number of modules.

    packages is the folder in which the libraries are installed.
    """
    parts: list[bytes] = []
    length = 0

    def add(code: CodeType) -> tuple[int, int, int]:
        nonlocal length
        marshalled = marshal.dumps(code)
        parts.append(marshalled)
        length += len(marshalled)
        return length - len(marshalled), len(marshalled), crc32(marshalled)

    listed: Modules = {}
    for name, (file, is_package) in modules.items():
        listed[name] = (*add(compile_module(name, Path(file), without)), file, is_package)
    compiled: Snippets = {source: add(compile(source, "<string>", "exec", dont_inherit=True)) for source in snippets}
    distributions = frozenset(folder.name for folder in packages.glob("*.dist-info"))
    head = marshal.dumps((sys.version, str(packages), distributions, listed, compiled))
    out.write_bytes(b"".join([len(head).to_bytes(8, "little"), crc32(head).to_bytes(4, "little"), head, *parts]))
    return len(listed)


if __name__ == "__main__":
    sys.exit(main())
