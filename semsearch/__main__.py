"""python -m semsearch: the same as the console script."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # `-m` puts the current folder first in sys.path, and a folder export/ or a file function.py there can be the user's
    if not sys.flags.safe_path and Path(sys.path[0]) != Path(__file__).parents[1]:
        del sys.path[0]
    from semsearch.commands.cli import main

    main()
