"""The error of packages from npm that are missing. It is here so that the command line can catch it without them."""


class PackagesError(RuntimeError):
    """The packages from npm are missing: the message says what was found and what to do."""
