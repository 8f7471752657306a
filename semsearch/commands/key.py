"""python -m function key: make an API key, and print the entry of API_KEY_HASHES that accepts it."""

import argparse
import json
import secrets
import sys
from collections.abc import Sequence

from semsearch.app.settings import SettingsError, hash_key, read_hashes
from semsearch.commands.options import filter_object
from semsearch.commands.terminal import fail


def main(arguments: Sequence[str]) -> int:
    """Print the key on standard error and the entry on standard output; return 1 for a name with other characters."""
    parser = argparse.ArgumentParser("python -m function key", description="Make an API key for a caller.")
    parser.add_argument("name", help="what the log calls the caller, such as team-a")
    parser.add_argument("--filter", type=filter_object, metavar="JSON", help="the caller finds only texts that pass it")
    options = parser.parse_args(arguments)
    key = secrets.token_hex(32)
    condition = "" if options.filter is None else f":{json.dumps(options.filter, separators=(',', ':'))}"
    entry = f"{options.name}:{hash_key(key)}{condition}"
    try:
        read_hashes("key", entry)
    except SettingsError as error:
        return fail(error)
    print(f"the key, shown only now: {key}", file=sys.stderr)
    print(entry)
    return 0
