"""The static site: what a visit loads, how long it takes, and whether it finds what the function finds."""
