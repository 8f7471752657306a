"""Run `python -m export` with shards of a few texts, so that a small corpus has many of them."""

import os
import sys

from export import cli, embed

embed.TEXTS_PER_SHARD = int(os.environ["TEXTS_PER_SHARD"])
sys.exit(cli.main())
