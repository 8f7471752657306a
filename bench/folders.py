"""The folders that measurements read and write."""

from pathlib import Path

PROJECT = Path(__file__).parents[1]
PEERS = Path(__file__).parent / "peers"
RESULTS = Path(__file__).parent / "results"
