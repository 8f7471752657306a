"""A bundle whose texts are still being fetched from S3. Imported only by what serves such a bundle."""

from function.engine.loading import Loaded, LoadedModel
from function.search.query import BackendError

RETRY_AFTER = 1  # seconds


class NotFetchedError(BackendError):
    """The texts are still being fetched from S3."""

    is_fetching = True

    def __init__(self, error: str | None = None) -> None:
        """Take the error of the last attempt to fetch them, if it failed."""
        state = "are still being fetched from S3" if error is None else f"could not be fetched from S3 ({error})"
        super().__init__(f"corpus: its texts {state}; try again in {RETRY_AFTER} s", RETRY_AFTER)


def is_incomplete(bundle: Loaded) -> bool:
    """Return whether only the model has been fetched of a bundle whose own files include its texts."""
    assert bundle.manifest.index is not None  # open_bundle checked it
    vectors = bundle.manifest.index.vectors
    return isinstance(bundle, LoadedModel) and (vectors is None or vectors.keeps_texts)
