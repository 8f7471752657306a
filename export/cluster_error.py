"""Errors of a cluster, and a check that Ray is installed, without importing Ray, which takes seconds."""

from importlib.util import find_spec


class ClusterError(RuntimeError):
    """A cluster that cannot be used: the message says where, what was found, what was expected and what to do."""


def require_ray() -> None:
    """Raise ClusterError if Ray is not installed."""
    if find_spec("ray") is None:
        raise ClusterError(
            "--ray: the package ray is not installed, expected the extra `cluster`; install it: "
            "pip install 'ray[data]>=2.50'"
        )
