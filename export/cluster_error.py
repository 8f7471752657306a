"""The error of a cluster, here so that the command line can catch it without importing Ray, which takes seconds."""


class ClusterError(RuntimeError):
    """A cluster that cannot be used: the message says where, what was found, what was expected and what to do."""
