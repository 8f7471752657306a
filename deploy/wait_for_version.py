"""Wait until a function serves the version that `semsearch publish --json` printed: a step of nightly.yaml.

    python deploy/wait_for_version.py published.json https://search.example.com

The environment variable SEARCH_KEY has an API key for all texts. Each request lets the function look for a newer
version, at most once in BundlePollSeconds. The exit code is 1 if the version is not served within SECONDS_TO_SWITCH.
"""

import json
import os
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

SECONDS_BETWEEN_REQUESTS = 5.0  # seconds between two requests
SECONDS_PER_REQUEST = 30.0  # seconds that a request can take


def main(published: Path, address: str) -> str | None:
    """Return None when the version is served, or why it is not when the time is over."""
    version = json.loads(published.read_text(encoding="utf-8"))["version"]
    ends = time.monotonic() + float(os.environ.get("SECONDS_TO_SWITCH", "300"))
    while True:
        try:
            bundle = served_by(address)
            if bundle["version"] == version and bundle["error"] is None:
                return None
            found = f"it serves {bundle['version']} with the error {bundle['error']}"
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            found = f"GET /info: {error!r}"
        if time.monotonic() >= ends:
            return f"{address}: expected version {version}, but {found}"
        time.sleep(min(SECONDS_BETWEEN_REQUESTS, max(0.0, ends - time.monotonic())))


def served_by(address: str) -> dict[str, Any]:
    """Return the field `bundle` of GET /info. Raises OSError, HTTPException, or another error for an odd reply."""
    request = Request(f"{address.rstrip('/')}/info", headers={"authorization": f"Bearer {os.environ['SEARCH_KEY']}"})  # noqa: S310
    with urlopen(request, timeout=SECONDS_PER_REQUEST) as reply:  # noqa: S310  the operator's own address
        bundle: dict[str, Any] = json.loads(reply.read())["bundle"]
        return bundle


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
