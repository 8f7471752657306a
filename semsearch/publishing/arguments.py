"""The options of the commands that publish bundles."""

import argparse
from pathlib import Path

from semsearch.commands.options import number_option

S3_VECTORS = "s3vectors"  # for --to

PUBLISH = """\
Send a bundle to S3 and make it the current version there. Running functions switch to it:

  python -m export publish bundle/ s3://BUCKET/PREFIX

Or send its texts and embeddings to an index of Amazon S3 Vectors, for a corpus that one function cannot hold. This
writes a second, small bundle: the model, and where the texts are. Deploy that one, or publish it to S3. With
--keep-texts the small bundle also has the texts, columns and keywords, and the index only the embeddings. Then the
modes keyword and hybrid work too.

  python -m export publish bundle/ --to s3vectors BUCKET/INDEX

Or remove texts of the current version without a new bundle: running functions skip them when they next poll S3.

  python -m export publish s3://BUCKET/PREFIX --remove ID ...
  python -m export publish s3://BUCKET/PREFIX --remove --ids FILE

They stay removed in every version until --restore brings them back. Leave them out of the next bundle too.

Files and vectors that were sent already are not sent again, so a stopped publish continues when you run it again.
`python -m export history`, `rollback` and `prune` manage the versions in S3.
"""
HISTORY = """\
List the versions of a bundle in S3, the one that was published last first.

  python -m export history s3://BUCKET/PREFIX
"""
ROLLBACK = """\
Make another version the current one: one that `history` lists, or the one before the current one.

  python -m export rollback s3://BUCKET/PREFIX [VERSION]
"""
PRUNE = """\
Delete old versions, but neither the newest ones, nor the current one and the one before it, nor one that was sent
during the last day.

  python -m export prune s3://BUCKET/PREFIX --keep 5
"""
DESCRIPTIONS = {"publish": PUBLISH, "history": HISTORY, "rollback": ROLLBACK, "prune": PRUNE}
DEFAULT_KEPT = 5
BUNDLE_FOLDER = "bundle"


def add_publishing_options(parser: argparse.ArgumentParser, command: str) -> None:
    """Add the options of one of these commands."""
    add = parser.add_argument
    where = "the place in S3 that holds the versions"
    if command == "publish":
        add("bundle", nargs="?", default=BUNDLE_FOLDER, help="the bundle's folder (default: bundle/)")
        add("url", nargs="?", metavar="s3://BUCKET/PREFIX", help=where)
        vectors = (
            "send to this index of S3 Vectors, which is created if it does not exist, instead of s3://BUCKET/PREFIX"
        )
        add("--to", nargs=2, metavar=(S3_VECTORS, "BUCKET/INDEX"), help=vectors)
        small = f"with --to: the folder of the small bundle that a function then serves (default: BUNDLE-{S3_VECTORS})"
        add("--out", type=Path, help=small)
        kept = "with --to: keep texts, columns and keywords in the small bundle, for the modes keyword and hybrid"
        add("--keep-texts", action="store_true", help=kept)
        change = parser.add_mutually_exclusive_group()
        removed = "ids of texts of the current version that functions skip when they next poll S3"
        change.add_argument("--remove", nargs="*", metavar="ID", help=removed)
        change.add_argument("--restore", nargs="*", metavar="ID", help="removed ids whose texts functions find again")
        add("--ids", type=Path, metavar="FILE", help="more ids for --remove or --restore, one in each line")
    else:
        add("url", metavar="s3://BUCKET/PREFIX", help=where)
    if command == "rollback":
        version = "its first characters, as `history` shows them (default: the one before the current one)"
        add("version", nargs="?", metavar="VERSION", help=version)
    if command == "prune":
        newest = f"how many of the newest versions to keep (default: {DEFAULT_KEPT})"
        add("--keep", type=number_option(0, 10**6), default=DEFAULT_KEPT, metavar="N", help=newest)
    add("--endpoint", metavar="URL", help="URL of another service that speaks the same protocol (default: Amazon's)")
    add("--profile", help="a profile of ~/.aws/config (default: AWS_PROFILE)")
    add("--region", help="the region of the bucket (default: AWS_REGION, AWS_DEFAULT_REGION or the profile's)")


def check_publish(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit with an error unless `publish` has one place to send to; fill in --out."""
    if options.remove is not None or options.restore is not None:
        _check_removal(parser, options)
        return
    if options.ids is not None:
        parser.error("--ids is for --remove or --restore; add one of them")
    options.bundle = Path(options.bundle)
    if (options.url is None) == (options.to is None):
        parser.error(f"name one place: BUNDLE s3://BUCKET/PREFIX, or BUNDLE --to {S3_VECTORS} BUCKET/INDEX")
    if options.to is None:
        for name in ("out", "keep_texts"):
            if getattr(options, name):
                parser.error(f"--{name.replace('_', '-')} is for --to {S3_VECTORS}; s3:// needs no other bundle")
        return
    if options.to[0] != S3_VECTORS:
        parser.error(f"--to: found {options.to[0]!r}, expected {S3_VECTORS}")
    bundle = options.bundle.resolve() if options.bundle.name in ("", "..") else options.bundle
    options.out = options.out or bundle.with_name(f"{bundle.name}-{S3_VECTORS}")


def _check_removal(parser: argparse.ArgumentParser, options: argparse.Namespace) -> None:
    """Exit with an error unless there are ids and one URL. The URL can also come after the ids."""
    if options.to is not None or options.out is not None:
        parser.error(f"--remove and --restore change s3://BUCKET/PREFIX; delete vectors of {S3_VECTORS} there")
    ids = options.remove if options.remove is not None else options.restore
    words = [word for word in (options.bundle, options.url) if word not in (None, parser.get_default("bundle"))]
    if not words and ids:
        words.append(ids.pop())
    if len(words) != 1 or not words[0].startswith("s3://"):
        parser.error("name the place that holds the texts, and nothing else: s3://BUCKET/PREFIX --remove ID ...")
    (options.url,) = words
    if not ids and options.ids is None:
        parser.error("found no ids; write them after --remove or --restore, or name a file with --ids")
