"""The version of the package, which `semsearch --version`, GET /info, the OpenAPI document and MCP show.

A module of its own, because an image has no metadata of a distribution, and `semsearch` itself names rooms that the app
must not import.
"""

VERSION = "1.0.0"  # tests compare it with pyproject.toml
