"""What a cold start in the image does: all of its bytecode is there and used, and nothing is written."""

import json
from typing import Any

import pytest

from tests.image.docker import python_in
from tests.image.sources import REQUESTS, SOURCES, last_line

WATCHED_START = """
import sys, os
compiled, written, opened = [], [], []
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod")
def watch(event, arguments):
    # others parse sources too, anyio its own; only what the import system compiles lacked bytecode
    if event == "compile" and sys._getframe(1).f_code.co_filename.startswith("<frozen importlib"):
        compiled.append(str(arguments[1]))
    if event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES or event in CHANGES:
        written.append([event, str(arguments[0])])
    elif event == "open":
        opened.append(str(arguments[0]))
sys.addaudithook(watch)

import awslambdaric.__main__  # what runs before the function in the real thing
before = len(opened)
from function.archive import archive_status
from function.handler import handler
opened_by_init = len(opened) - before if archive_status() == "used" else 0

import json
statuses = [handler(event, None)["statusCode"] for event in json.load(sys.stdin)]

import importlib.util, struct
invalid = {}
sources = 0
for name, module in sorted(sys.modules.items()):
    source = getattr(module, "__file__", None) or ""
    if not source.endswith(".py"):
        continue
    sources += 1
    bytecode = importlib.util.cache_from_source(source)
    if not os.path.exists(bytecode):
        invalid[name] = f"no {bytecode}"
        continue
    with open(bytecode, "rb") as file:
        magic, flags, seconds, length = struct.unpack("<4sIII", file.read(16))
    seen = os.stat(source)
    is_hashed = flags == 0b01  # never compared with the source
    is_dated = flags == 0 and (seconds, length) == (int(seen.st_mtime), seen.st_size)
    if magic != importlib.util.MAGIC_NUMBER or not (is_hashed or is_dated):
        invalid[name] = f"{bytecode} is of another interpreter or older than its source"
    elif source.startswith("/var/task/") and not is_hashed:
        invalid[name] = f"{bytecode} depends on the time of its source"
print("\\n" + json.dumps({
    "sources": sources, "invalid": invalid, "compiled": compiled, "written": written, "statuses": statuses,
    "opened": opened_by_init,
}))
"""


@pytest.fixture(scope="module")
def start(image: str) -> dict[str, Any]:
    """What the script saw of a start and a request of each kind."""
    events = [SOURCES["http-api"](request) for request in REQUESTS.values()]
    found: dict[str, Any] = last_line(python_in(image, WATCHED_START, text=json.dumps(events)))
    assert 200 in found["statuses"]
    return found


def test_a_start_and_a_request_use_valid_bytecode_from_one_file_and_write_nothing(start: dict[str, Any]) -> None:
    assert start["sources"] > 300  # or the script did not look
    assert (start["invalid"], start["compiled"], start["written"]) == ({}, [], [])
    assert 0 < start["opened"] < 20  # 0 without the archive, hundreds if it misses most modules
