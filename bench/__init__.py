"""Measurements: how fast, how close and how cheap this project is, one command for each question."""
