"""Check the bundle that an image gets, because a start has no time to: `python3 -m function.image.check_bundle FOLDER`.

An image whose function takes its bundle from S3 has an empty manifest.json; there is nothing to check then.
"""

import sys
from pathlib import Path

from semsearch.engine.bundle import MANIFEST, BundleError, check_files

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    if (folder / MANIFEST).stat().st_size:
        try:
            check_files(folder)
        except BundleError as error:
            sys.exit(str(error))
