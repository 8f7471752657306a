"""Print the file that describes an image, for GET /info: `python3 -m function.image.describe BUNDLE REVISION`.

It has the version of the package, the revision unless that is empty, and the SHA-256 of the bundle's manifest. That is
left out if the manifest is empty, because the function takes its bundle from S3.
"""

import json
import sys
from hashlib import sha256
from pathlib import Path

from semsearch.engine.bundle import MANIFEST
from semsearch.version import VERSION

if __name__ == "__main__":
    described, revision = {"version": VERSION}, sys.argv[2]
    if revision:
        described["revision"] = revision
    manifest = Path(sys.argv[1], MANIFEST).read_bytes()
    if manifest:
        described["bundle"] = sha256(manifest).hexdigest()
    print(json.dumps(described))
