"""Wait until a function serves the version that `semsearch publish --json` printed: a step of nightly.yaml.

    python deploy/wait_for_version.py published.json https://search.example.com

The environment variable SEARCH_KEY has an API key for all texts. Each request lets the function look for a newer
version, at most once in BundlePollSeconds. The exit code is NOT_SERVED if it does not serve the version within
SECONDS_TO_SWITCH. It is UNDECIDED if the last reply says nothing against the texts, such as that SEARCH_KEY is not
valid, or if the filter of another key does not fit them. Then the texts should stay.
"""

import json
import os
import sys
import time
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

UNDECIDED, NOT_SERVED = 1, 3  # exit codes; Python's own are 1 after an exception and 2 for wrong arguments
SECONDS_BETWEEN_REQUESTS = 5.0  # seconds between two requests
SECONDS_PER_REQUEST = 30.0  # seconds that a request can take


def main(published: Path, address: str) -> int:
    """Return 0 when the version is served, or another exit code and the reason on standard error when time is over."""
    version, key = json.loads(published.read_text(encoding="utf-8"))["version"], os.environ["SEARCH_KEY"]
    ends = time.monotonic() + float(os.environ.get("SECONDS_TO_SWITCH", "300"))
    while True:
        code = NOT_SERVED
        try:
            info = request_info(address, key)
            bundle, unusable = info["bundle"], info.get("keys", {}).get("unusable")
            if bundle["version"] == version:
                code = UNDECIDED
                if bundle["error"] is None and not unusable:
                    return 0
            found = f"it serves {bundle['version']} with the error {bundle['error']}"
            if unusable:  # the reason can be the texts or the list of keys: a person has to decide
                found += f", and refuses {len(unusable)} keys: {unusable[0]}"
        except HTTPError as error:
            found = f"GET /info: {error!r}"
            if 400 <= error.code < 500:
                code, found = UNDECIDED, f"{found}; is SEARCH_KEY valid? The published texts stay"
        except (OSError, HTTPException, ValueError, LookupError, TypeError) as error:
            found = f"GET /info: {error!r}"
        if time.monotonic() >= ends:
            print(f"{address}: expected version {version}, but {found}", file=sys.stderr)
            return code
        time.sleep(min(SECONDS_BETWEEN_REQUESTS, max(0.0, ends - time.monotonic())))


def request_info(address: str, key: str) -> dict[str, Any]:
    """Return the reply of GET /info. Raises OSError, HTTPException, or another error for an odd reply."""
    request = Request(f"{address.rstrip('/')}/info", headers={"authorization": f"Bearer {key}"})  # noqa: S310
    with urlopen(request, timeout=SECONDS_PER_REQUEST) as reply:  # noqa: S310  the operator's own address
        info: dict[str, Any] = json.loads(reply.read())
        return info


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
