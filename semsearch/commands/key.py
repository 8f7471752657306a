"""The command `semsearch key`: make an API key, and print the entry of API_KEY_HASHES that accepts it."""

import secrets
import sys
from pathlib import Path

from cyclopts import App

from semsearch.app.access.bound_filters import misfit
from semsearch.app.settings import encode_filter, hash_key, read_hashes
from semsearch.commands.options import JsonObject
from semsearch.engine.bundle import read_manifest
from semsearch.engine.errors import OptionError

EXAMPLES = """\
Examples:

    semsearch key team-a
    semsearch key team-b --filter '{"tenant": "b"}' --bundle bundle/
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def key(name: str, /, *, filter: JsonObject | None = None, bundle: Path | None = None) -> None:
    """Make an API key for a caller of a function or a server.

    The key is printed on standard error, and the entry of API_KEY_HASHES that accepts it on standard output.

    Args:
        name: what the log calls the caller, such as team-a.
        filter: the caller finds only texts that pass this filter.
        bundle: refuse a filter that does not fit the columns of this bundle, whose functions would refuse the key.
    """
    if filter is not None and bundle is not None and (reason := misfit(filter, read_manifest(bundle))) is not None:
        raise OptionError("filter", f"does not fit {bundle}: {reason}")
    made = secrets.token_hex(32)
    entry = f"{name}:{hash_key(made)}"
    if filter is not None:
        entry += f":{encode_filter(filter)}"
    read_hashes("key", entry)  # refuses other characters in the name
    print(f"the key, shown only now: {made}", file=sys.stderr)
    print(entry)
