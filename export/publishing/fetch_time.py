"""How long a function takes to fetch a bundle from S3, compared with the time that Lambda allows a start.

The times are calculated from the bandwidth alone, because S3 answers several requests at once faster than a function
can receive. Left out: what the function does before and after, for which a start keeps two seconds.
"""

from dataclasses import dataclass
from pathlib import Path

from function.engine.bundle import MANIFEST, TRUNCATED, Manifest, open_bundle
from function.engine.published import START_SECONDS

MEGABYTE = 1_000_000
DEFAULT_BANDWIDTH = 625  # megabits that a function receives in a second
# bandwidths (Mbit/s), and which functions have them
BANDWIDTHS = {DEFAULT_BANDWIDTH: "every function", 3_000: "on request, from 2,048 MB of memory on"}


@dataclass(frozen=True, slots=True)
class FetchTime:
    """The size of the files that a function fetches, and the time that this takes."""

    bytes: int
    bandwidth: int  # Mbit/s

    @property
    def seconds(self) -> float:
        """Return the time of the fetch."""
        return self.bytes * 8 / (self.bandwidth * MEGABYTE)

    @property
    def is_in_time(self) -> bool:
        """Return whether a start waits until the bundle has arrived."""
        return self.seconds <= START_SECONDS

    def describe(self) -> str:
        """Return a sentence for the person who has published the bundle."""
        size = f"{self.bytes / MEGABYTE:,.1f} MB in about {self.seconds:,.1f} s at {self.bandwidth:,} Mbit/s"
        limit = f"a start waits up to {START_SECONDS:g} s"
        if self.is_in_time:
            return f"A function fetches {size}; {limit}."
        return f"A function fetches {size}, but {limit}. Then only the model answers, until the rest has arrived."


def fetched_bytes(manifest: Manifest) -> int:
    """Return the bytes of the files that a function fetches if its image does not have the same model."""
    return sum(info.bytes for name, info in manifest.files.items() if name != TRUNCATED)


def limits(bundle: Path, is_named: bool, bandwidth: int | None) -> list[str]:
    """Return lines with the largest bundle that arrives in time, for each bandwidth, and the time of this bundle.

    A bundle that is not named and does not exist is left out. Raises BundleError if the bundle does not open.
    """
    size = fetched_bytes(open_bundle(bundle)) if is_named or (bundle / MANIFEST).exists() else None
    about = "" if size is None else f"  {bundle} ({size / MEGABYTE:,.1f} MB)"
    lines = [f"{'Mbit/s':>6}  {'largest bundle':>14}{about}"]
    chosen = BANDWIDTHS if bandwidth is None else {bandwidth: BANDWIDTHS.get(bandwidth, "")}
    for each, whose in chosen.items():
        largest = START_SECONDS * each / 8
        line = f"{each:>6,}  {largest:>11,.0f} MB"
        if size is not None:
            found = FetchTime(size, each)
            line += f"  {f'{found.seconds:,.1f} s, ' + ('in time' if found.is_in_time else 'late'):<{len(about) - 2}}"
        lines.append(f"{line}  {whose}".rstrip())
    return lines
