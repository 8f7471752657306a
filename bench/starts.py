"""What is seen of the starts of one function."""

import statistics
from dataclasses import dataclass, field


@dataclass(slots=True)
class Starts:
    """What was seen of a candidate's starts, in milliseconds and megabytes."""

    init: list[float] = field(default_factory=list)
    first_response: list[float] = field(default_factory=list)
    peak_megabytes: list[float] = field(default_factory=list)
    phases: list[dict[str, float]] = field(default_factory=list)

    def median_phases(self) -> dict[str, float]:
        """Return the median of each phase that the function reported."""
        names = dict.fromkeys(name for phases in self.phases for name in phases)
        return {name: statistics.median(phases[name] for phases in self.phases if name in phases) for name in names}

    def times_as_long_as(self, other: "Starts") -> float:
        """Return INIT as a multiple of the other's: the median over pairs that started one after the other."""
        return statistics.median(own / others for own, others in zip(self.init, other.init, strict=True))
