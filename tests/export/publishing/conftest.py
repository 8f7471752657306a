"""The stand-ins for S3 and S3 Vectors, and bundles to publish."""

from tests.stand_ins.fixtures import (
    bundles,
    endpoint,
    keys,
    own_bundle,
    publish,
    published,
    quiet_server,
    s3,
    send,
    server,
    store,
    url,
)
