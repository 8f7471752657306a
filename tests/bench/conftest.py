"""Results have the same names on every processor."""

import pytest

from bench.report import VNNI


@pytest.fixture(autouse=True)
def _vnni(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.report.processor_class", lambda: VNNI)
