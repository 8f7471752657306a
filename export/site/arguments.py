"""The options of `python -m export site`."""

import argparse
from pathlib import Path

# Megabytes that a visit loads until it can search by meaning: about 50,000 texts; 8 seconds at 50 Mbit/s
MOST_MEGABYTES = 48
SITE = """\
Write a static site that searches a bundle in the browser, without a server. Any static host can publish the folder.

  python -m export site bundle/ --out site/

Everything in it is public: the texts with their metadata, the embeddings and the model.
onnxruntime-web and a stemmer come from npm, which is part of Node.js 20 or newer.
"""


def add_site_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "bundle", nargs="?", type=Path, default=Path("bundle"), help="the bundle's folder (default: bundle/)"
    )
    parser.add_argument("--out", type=Path, default=Path("site"), help="the site's folder (default: site/)")
    limit = f"refuse a site that loads more than this until it can search by meaning (default: {MOST_MEGABYTES})"
    parser.add_argument("--most-megabytes", type=_megabytes, default=MOST_MEGABYTES, metavar="N", help=limit)
    parser.add_argument(
        "--packages",
        type=Path,
        metavar="FOLDER",
        help="where `npm ci` has installed the packages of export/site/package-lock.json (default: npm installs them "
        "into a temporary folder)",
    )


def _megabytes(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 100_000:
        raise argparse.ArgumentTypeError(f"found {text!r}, expected a number of megabytes above 0")
    return number
