"""The search of any bundle, whether its texts are in its own files or in Amazon S3 Vectors."""

from semsearch.engine.loading import AnyBundle, require_texts
from semsearch.search.executor import Executor
from semsearch.search.query import SearchFunction
from semsearch.search.search import BundleSearch


def make_search(bundle: AnyBundle, executor: Executor) -> SearchFunction:
    """Return what searches an open bundle; the methods `search` say what it raises."""
    vectors = bundle.manifest.corpus.vectors
    if vectors is None:
        return BundleSearch(require_texts(bundle), executor).search
    from semsearch.search.s3vectors import RemoteSearch  # only a bundle without texts of its own needs it

    return RemoteSearch(bundle, vectors, executor).search
