"""The command `semsearch publish`: send a bundle to S3, or its texts and embeddings to Amazon S3 Vectors."""

from contextlib import closing
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter
from rich.console import Console

from semsearch.app.access.bound_filters import SHOWN_REASONS, unusable_keys
from semsearch.app.settings import read_hashes
from semsearch.aws.s3.published import S3
from semsearch.commands.console import TerminalConsole, suggested
from semsearch.commands.places import bundle_at
from semsearch.commands.published import AMAZON, MEGABYTE, AwsOptions, InAws, open_store, warn_of_removed
from semsearch.engine.bundle import BundleError, read_manifest
from semsearch.engine.errors import OptionError
from semsearch.indexing.errors import require_packages
from semsearch.indexing.progress import showing_progress

if TYPE_CHECKING:
    from semsearch.publishing.store import Store

S3_VECTORS = "s3vectors://"
EXAMPLES = """\
Examples:

    semsearch publish bundle/ s3://my-bundles/docs
    semsearch publish bundle/ s3://my-bundles/docs --keys keys.txt
    semsearch publish bundle/ s3vectors://my-vectors/docs

`semsearch history`, `rollback`, `prune`, `remove` and `restore` manage what is in S3. Files and vectors that were sent
already are not sent again, so a stopped publish continues when you run it again.
"""
command: App = App(help_epilogue=EXAMPLES)


@command.default
def publish(
    place: str,
    url: str,
    /,
    *,
    out: Path | None = None,
    keys: Path | None = None,
    other_model: Annotated[bool, Parameter(negative=())] = False,
    new_pointer: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
    aws: InAws = AMAZON,
) -> None:
    """Send a bundle to S3 and make it the current version there. Running functions switch to it.

    An address s3vectors://BUCKET/INDEX sends its texts and embeddings to an index of Amazon S3 Vectors, for a corpus
    that one function cannot hold. This writes a second, small bundle: the model, and where the texts are. Deploy that
    one, or publish it to S3.

    Args:
        place: a bundle, or a folder of documents, whose index is kept in a cache.
        url: s3://BUCKET/PREFIX, or s3vectors://BUCKET/INDEX, whose index is created if it does not exist.
        out: with s3vectors:// : folder of the small bundle. Without it, the bundle's with -s3vectors at the end.
        keys: with s3:// : file with the entries of API keys, as in API_KEY_HASHES. A bundle is not published if the
            filter of a key does not fit its columns, because functions would refuse that key.
        other_model: with s3:// : accept a bundle with another model than the current version. Running functions refuse
            it and new ones take it, so start all of them again.
        new_pointer: with s3:// : write a new current.json although versions are there, because the old one was lost or
            the first publish was stopped. Ids that were removed stay removed.
        json: with s3:// : print the result as JSON, for programs. `replaced` is the version that was current before,
            null if there was none or if it is the same.
    """
    if url.startswith(S3_VECTORS):
        of_s3 = {"keys": keys is not None, "other_model": other_model, "new_pointer": new_pointer, "json": json}
        for name, is_stated in of_s3.items():
            if is_stated:
                raise OptionError(name, "is for s3://")
        _publish_vectors(bundle_at(place), url.removeprefix(S3_VECTORS), out, aws)
        return
    if not url.startswith(S3):
        raise OptionError("url", f"found {url!r}, expected s3://BUCKET/PREFIX or s3vectors://BUCKET/INDEX")
    if out is not None:
        raise OptionError("out", "is for s3vectors://; s3:// needs no other bundle")
    console = TerminalConsole(stderr=json)
    bundle = bundle_at(place)
    if keys is not None:
        _check_keys(keys, bundle)
    with open_store(url, aws) as store:
        before = store.pointer()
        if not new_pointer:
            store.check_pointer(before)
        if not other_model:
            store.check_model(bundle, before)
        with showing_progress(console) as on_progress:
            version, files, sent = store.send(bundle, on_progress)
        store.make_current(version, before)
        replaced = None
        if before.version != version:
            replaced = before.version
        if json:
            print(dumps({"url": store.url, "version": version, "replaced": replaced, "files": files, "bytes": sent}))
        else:
            megabytes = f"{sent / MEGABYTE:,.1f} MB"
            console.print(f"{version[:12]} is the current version of {store.url}; {files} files were sent, {megabytes}")
        warn_of_removed(store, console)
        _abort_old_uploads(store, console)
        if replaced is not None and not json:
            console.print(f"To undo this: {suggested('rollback', store.url)}", markup=False)


def _check_keys(file: Path, bundle: Path) -> None:
    """Raise BundleError if the filter of a key in a file does not fit the bundle.

    Raises OptionError for a file that cannot be read, and SettingsError for one without keys.
    """
    try:
        listed = read_hashes(str(file), file.read_text(encoding="ascii", errors="replace"))
    except OSError as error:
        raise OptionError("keys", f"{file}: cannot be read ({error.strerror}), expected a file of keys") from error
    if unusable := unusable_keys(listed, read_manifest(bundle)):
        found = "; ".join(reason for _, reason in unusable[:SHOWN_REASONS])
        raise BundleError(f"{bundle}: {len(unusable)} keys of {file} do not fit it; nothing was published: {found}")


def _abort_old_uploads(store: "Store", console: Console) -> None:
    """Abort what killed commands have left. The version is current already, so an error is only a warning."""
    try:
        store.abort_old_uploads()
    except BundleError as error:
        console.print(f"warning: old unfinished uploads stay, and S3 bills them: {error}", markup=False)


def _publish_vectors(bundle: Path, index: str, out: Path | None, aws: AwsOptions) -> None:
    require_packages("s3vectors://", "publish", "boto3")
    from semsearch.publishing.bucket import connect  # needs the package
    from semsearch.publishing.s3vectors import publish as send

    console = TerminalConsole()
    if out is None:
        named = bundle.resolve() if bundle.name in ("", "..") else bundle
        out = named.with_name(f"{named.name}-s3vectors")
    connected = closing(connect("s3vectors", aws.endpoint, aws.profile, aws.region))
    with connected as client, showing_progress(console) as on_progress:
        sent = send(bundle, index, out, client, on_progress)
    place = f"{sent.info.bucket}/{sent.info.index} in {sent.info.region}"
    console.print(f"{place}: {sent.sent:,} vectors sent, {sent.there:,} were there", markup=False)
    console.print(f"{out}/ is ready. Try it: {suggested('serve', out)}", markup=False)
