"""The commands of `python -m function` besides the server."""
