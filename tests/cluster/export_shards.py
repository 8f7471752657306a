"""Run `semsearch index` with shards of a few texts, so that a small corpus has many of them.

An export that takes too long shows what each of its threads waits for, and ends.
"""

import faulthandler
import os

from semsearch.commands.main import main
from semsearch.indexing.vectors import embed

faulthandler.dump_traceback_later(int(os.environ["MOST_SECONDS"]), exit=True)
embed.TEXTS_PER_SHARD = int(os.environ["TEXTS_PER_SHARD"])
main()
