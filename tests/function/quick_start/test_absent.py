"""What is not found while starting is found afterwards, and what did without it works."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

SCRIPT = """
import importlib, json
from function.quick_start.absent import NAMES, absent_modules
outcomes = []
with absent_modules():
    for name in NAMES:
        try:
            importlib.import_module(name)
        except ImportError:
            outcomes.append(name)
print(json.dumps([outcomes, list(NAMES), [importlib.import_module(name).__name__ for name in NAMES]]))
"""


def test_the_modules_are_not_found_inside_and_are_found_afterwards(in_a_new_process: Callable[..., Any]) -> None:
    outcomes, names, found = in_a_new_process(SCRIPT)
    assert outcomes == names == found


def test_one_that_is_there_already_stays(in_a_new_process: Callable[..., Any]) -> None:
    script = """
import json, sys, _hashlib
from function.quick_start.absent import absent_modules
with absent_modules():
    inside = sys.modules["_hashlib"] is _hashlib
print(json.dumps([inside, sys.modules["_hashlib"] is _hashlib]))
"""
    assert in_a_new_process(script) == [True, True]


SIGNATURE = """
import json, sys
import function.handler
import hashlib, hmac
print(json.dumps([hmac.new(b"key", b"text", "sha256").hexdigest()[:16], hashlib.sha256(b"text").hexdigest()[:16]]))
"""


def test_signatures_and_hashes_are_right_after_a_start(in_a_new_process: Callable[..., Any], bundle: Path) -> None:
    # from `printf text | openssl dgst -sha256`, with and without `-hmac key`
    assert in_a_new_process(SIGNATURE, BUNDLE_DIR=str(bundle)) == ["6afa9046a9579cad", "982d9e3eb996f559"]
