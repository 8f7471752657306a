"""The options of the commands that publish bundles."""

import argparse
from pathlib import Path

PUBLISH = """\
Send a bundle to S3 and let the pointer name it, so that running functions switch to it.

  python -m export publish bundle/ s3://bucket/prefix
"""
HISTORY = """\
List the versions of a bundle in S3, the one that was published last first.

  python -m export history s3://bucket/prefix
"""
ROLLBACK = """\
Let the pointer name another version: one that `history` lists, or the one before the current one.

  python -m export rollback s3://bucket/prefix [VERSION]
"""
PRUNE = """\
Delete versions, but neither the newest ones nor those that the pointer names: the current one and the one before.

  python -m export prune s3://bucket/prefix --keep 5
"""
DESCRIPTIONS = {"publish": PUBLISH, "history": HISTORY, "rollback": ROLLBACK, "prune": PRUNE}
DEFAULT_KEPT = 5


def publishing_options(command: str) -> tuple[str, list[argparse.ArgumentParser]]:
    """Return the description and the options of one of these commands."""
    options = argparse.ArgumentParser(add_help=False)
    if command == "publish":
        options.add_argument("bundle", type=Path, help="the bundle's folder")
    options.add_argument("url", metavar="s3://BUCKET/PREFIX", help="where the versions and the pointer are")
    if command == "rollback":
        options.add_argument("version", nargs="?", metavar="VERSION", help="its first characters, as history shows")
    if command == "prune":
        text = f"newest versions to keep beside the current one and the one before it (default: {DEFAULT_KEPT})"
        options.add_argument("--keep", type=_count, default=DEFAULT_KEPT, metavar="N", help=text)
    options.add_argument(
        "--endpoint", metavar="URL", help="of a store that speaks S3 (default: AWS_ENDPOINT_URL_S3, AWS)"
    )
    options.add_argument("--profile", help="of ~/.aws/config (default: AWS_PROFILE)")
    options.add_argument("--region", help="default: AWS_REGION, or the profile's")
    return DESCRIPTIONS[command], [options]


def _count(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise argparse.ArgumentTypeError(f"{text!r}, expected a whole number of 0 or more")
    return int(text)
