"""What the commands for published bundles share: the options of AWS, and how versions and removed ids are shown."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter
from rich.console import Console

from semsearch.aws.s3.published import S3
from semsearch.commands.console import suggested
from semsearch.engine.errors import OptionError
from semsearch.indexing.errors import require_packages

if TYPE_CHECKING:
    from semsearch.publishing.store import Store

MEGABYTE = 1_000_000


@dataclass(frozen=True, slots=True)
class AwsOptions:
    """Where a bucket is, and which credentials open it.

    Args:
        endpoint: URL of another service that speaks the same protocol. Without it, Amazon's.
        profile: a profile of ~/.aws/config. Without it, AWS_PROFILE.
        region: region of the bucket. Without it, AWS_REGION, AWS_DEFAULT_REGION or the profile's.
    """

    endpoint: str | None = None
    profile: str | None = None
    region: str | None = None


InAws = Annotated[AwsOptions, Parameter(name="*")]
AMAZON = AwsOptions()


@contextmanager
def open_store(url: str, aws: AwsOptions) -> Iterator["Store"]:
    """Yield the place in S3 that holds the versions of a bundle. Raises PublishError if it cannot be opened."""
    if not url.startswith(S3):
        raise OptionError("url", f"found {url!r}, expected s3://BUCKET/PREFIX")
    require_packages(url, "publish", "boto3")
    from semsearch.publishing.bucket import connect  # needs the package
    from semsearch.publishing.store import Store

    with closing(connect("s3", aws.endpoint, aws.profile, aws.region)) as client:
        yield Store(client, url)


def warn_of_removed(store: "Store", console: Console) -> None:
    """Print a warning if the current version has ids that functions skip."""
    from semsearch.publishing.store import first_ids

    if ids := [id for id, rows in store.pointer().removed.items() if rows]:
        console.print(
            f"warning: this version has removed ids, whose texts functions skip: {first_ids(ids)}. Leave them out of "
            f"the next bundle, or bring them back: {suggested('restore', store.url, 'ID')}",
            markup=False,
        )
