"""An error of a library, whose text may have many lines, in a message of one line."""


def first_line(error: BaseException) -> str:
    """Return the error's type and the first line of its text."""
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].strip()}" if lines else type(error).__name__
