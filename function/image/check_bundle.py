"""Check the bundle that an image gets, because a start has no time to: `python3 -m function.image.check_bundle FOLDER`.

An image whose function takes its bundle from S3 has an empty manifest.json; there is nothing to check then.
"""

import sys
from pathlib import Path

from semsearch.engine.bundle import MANIFEST, BundleError, check_files

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    manifest = folder / MANIFEST
    if not manifest.is_file():
        expected = "expected an index of your texts; make a bundle first: semsearch index PATH --out"
        sys.exit(f"{manifest}: not found, {expected} {folder}/")
    if manifest.stat().st_size:
        try:
            check_files(folder)
        except BundleError as error:
            sys.exit(str(error))
