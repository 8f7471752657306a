"""Measures the export and the function from outside; nothing imports it."""
