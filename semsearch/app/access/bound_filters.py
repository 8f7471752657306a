"""Which keys have a filter that does not fit the bundle: they alone are refused, and the operator is told."""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from semsearch.app.settings import IN_LAMBDA, ApiKey, Settings
from semsearch.app.telemetry import Log, make_metrics
from semsearch.engine.bundle import Manifest
from semsearch.engine.metadata.filters import FilterError, read_filter

if TYPE_CHECKING:
    from semsearch.engine.loading import AnyBundle  # the commands that check a filter open no bundle

SHOWN_REASONS = 5  # maximum number of keys that a log line or a message names


def misfit(condition: object, manifest: Manifest) -> str | None:
    """Return why a bound filter does not fit the columns of a bundle, None if it fits."""
    if manifest.corpus.vectors is not None:
        return "the texts are in S3 Vectors, expected in the bundle; publish the bundle to S3"
    try:
        read_filter(condition, {"id": "string"} | manifest.corpus.columns)
    except FilterError as error:
        return f"{error}; name a column of the bundle"
    return None


def unusable_keys(keys: Sequence[ApiKey], manifest: Manifest) -> list[tuple[ApiKey, str]]:
    """Return the keys whose filter does not fit the columns of a bundle, each with its name and the reason in words."""
    reasons = [(key, misfit(key.filter, manifest)) for key in keys if key.filter is not None]
    return [(key, f"the filter of {key.name}: {reason}") for key, reason in reasons if reason is not None]


class BoundFilters:
    """The keys whose filter does not fit the bundle of a request.

    They are looked for again when the bundle or the list of keys has changed, which is when AWS was asked for keys: so
    the log and the metric KeysUnusable report such a key each minute while it is there.
    """

    def __init__(
        self,
        current: "Callable[[], AnyBundle]",
        settings: Settings,
        logger: Log,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        """Take the function that returns the whole bundle of the current request."""
        self._current = current
        self._settings, self._logger, self._environment = settings, logger, environment
        self._checked: tuple[Sequence[ApiKey], Manifest] | None = None
        self._unusable: Sequence[tuple[ApiKey, str]] = ()

    def reason_against(self, key: ApiKey, keys: Sequence[ApiKey]) -> str | None:
        """Return why a key of a list cannot be used with the bundle of the current request, None if it can."""
        self.check(keys)
        return next((reason for unusable, reason in self._unusable if unusable is key), None)

    def reasons(self) -> list[str]:
        """Return what is wrong with each key that cannot be used, as the last request found it."""
        return [reason for _, reason in self._unusable]

    def check(self, keys: Sequence[ApiKey]) -> None:
        """Look for keys that cannot be used, and report them, unless that was done for this list and this bundle."""
        manifest = self._current().manifest
        if self._checked is not None and self._checked[0] is keys and self._checked[1] is manifest:
            return
        self._checked = keys, manifest
        self._unusable = unusable_keys(keys, manifest)
        if not self._unusable:
            return
        shown = "; ".join(self.reasons()[:SHOWN_REASONS])
        self._logger.error("API keys are unusable", extra={"keys": len(self._unusable), "error": shown})
        if IN_LAMBDA in self._environment:
            metrics = make_metrics(self._settings)
            metrics.add_metric("KeysUnusable", "Count", float(len(self._unusable)))
            metrics.flush_metrics()
