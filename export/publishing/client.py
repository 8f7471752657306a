"""boto3's client of one service, with the profile, the region and the endpoint that the user named, and its errors."""

import os
from typing import Any

from export.errors import require_packages
from function.engine.bundle import BundleError

ATTEMPTS = 10  # the most that boto3 makes of each call, with growing pauses


class PublishError(BundleError):
    """A version that cannot be published or switched to: the message says where, what was found and what to do."""


def connect(service: str, endpoint: str | None = None, profile: str | None = None, region: str | None = None) -> Any:
    """Return a client of a service, such as "s3". An option that is None is found as the AWS CLI finds it.

    Raises PackagesError if boto3 is not installed, PublishError if it takes no such profile, region or endpoint.
    """
    require_packages(service, "publish")
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError

    retries: Any = {"mode": "standard", "max_attempts": ATTEMPTS}
    try:
        # boto3 itself does not read AWS_REGION, which the function and the other SDKs do
        session = boto3.Session(profile_name=profile, region_name=region or os.environ.get("AWS_REGION"))
        return session.client(service, endpoint_url=endpoint, config=Config(retries=retries))
    except (BotoCoreError, ValueError) as error:
        raise PublishError(f"AWS: {error}; check --profile, --region and --endpoint") from error
