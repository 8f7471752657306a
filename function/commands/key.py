"""python -m function key: make an API key, and print the entry of API_KEY_HASHES that accepts it."""

import argparse
import json
import secrets
import sys
from collections.abc import Sequence

from function.commands.options import filter_object
from function.commands.terminal import fail
from function.settings import SettingsError, hash_key, read_hashes

KEY_BYTES = 32  # of randomness, written as 64 hexadecimal digits


def main(arguments: Sequence[str]) -> int:
    """Print the key on standard error and the entry on standard output, and return the exit code.

    0: made, 1: the name has other characters than letters, digits and _.@-, 2: wrong arguments.
    """
    parser = argparse.ArgumentParser(
        "python -m function key",
        description="Make an API key for a caller, and the entry that the function needs.",
    )
    parser.add_argument("name", help="what the log calls the caller, such as team-a")
    parser.add_argument("--filter", type=filter_object, metavar="JSON", help="the caller finds only texts that pass it")
    options = parser.parse_args(arguments)
    key = secrets.token_hex(KEY_BYTES)
    entry = f"{options.name}:{hash_key(key)}"
    if options.filter is not None:
        entry += f":{json.dumps(options.filter, separators=(',', ':'))}"
    try:
        read_hashes("key", entry)
    except SettingsError as error:
        return fail(error)
    print(f"the key, shown only now: {key}", file=sys.stderr)
    print(entry)
    return 0
