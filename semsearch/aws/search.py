"""The search of any bundle, whether its embeddings are in its own files or in Amazon S3 Vectors."""

from semsearch.engine.loading import Loaded
from semsearch.search.executor import Executor
from semsearch.search.query import SearchFunction
from semsearch.search.search import BundleSearch


def make_search(bundle: Loaded, executor: Executor) -> SearchFunction:
    """Return what searches an open bundle; `BundleSearch.search` says what it raises."""
    if bundle.complete is not None:
        return BundleSearch(bundle, executor).search
    from semsearch.aws.s3vectors.search import RemoteSearch  # only a bundle without embeddings of its own needs it

    return RemoteSearch(bundle, executor).search
