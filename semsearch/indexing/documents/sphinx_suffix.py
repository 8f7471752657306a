"""Whether a file named `.txt` is reStructuredText: the configuration of Sphinx says so, or the file's own marks.

Django names its pages so. The configuration is Python, which is parsed and never run.
"""

import ast
import re
from pathlib import Path

from semsearch.indexing.walking import SPHINX_CONFIG, find_above

SOURCE_SUFFIX = "source_suffix"
TXT = ".txt"
MARKUP = "restructuredtext"  # Sphinx's name of it, where the option says what each suffix is
MARKED_BYTES = 50_000  # bytes at the beginning of a file in which marks are looked for
UNDERLINED = re.compile(r"^(?=\S)(.{3,})\n(([=\-~^\"'#*+`])\3{2,})[ \t]*$", re.MULTILINE)
# a directive, a target, or a role of Sphinx, none of which other texts have
SPHINX_MARK = re.compile(
    r"^\.\. (?:[a-z][\w:+.-]*::(?:\s|$)|_[^\n]+:[ \t]*$)|(?<![\w:]):[a-z][\w:+-]*:`[^`\n]+`", re.MULTILINE
)


def suffix_is_rst(folder: Path) -> bool:
    """Return whether the nearest conf.py, in a folder or above it, says that `.txt` is reStructuredText.

    One that cannot be read or parsed says nothing.
    """
    place = find_above(folder, (SPHINX_CONFIG,))
    if place is None:
        return False
    try:
        tree = ast.parse((place / SPHINX_CONFIG).read_bytes())
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    stated: object = None
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and SOURCE_SUFFIX in [
            target.id for target in statement.targets if isinstance(target, ast.Name)
        ]:
            try:
                stated = ast.literal_eval(statement.value)
            except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
                stated = None
    if isinstance(stated, dict):
        return stated.get(TXT) == MARKUP
    return stated == TXT or (isinstance(stated, list | tuple) and TXT in stated)


def has_marks(path: Path) -> bool:
    """Return whether the beginning of a file has an underlined title, and a directive, a target or a role."""
    with path.open("rb") as file:
        text = file.read(MARKED_BYTES).decode("utf-8", "replace").replace("\r\n", "\n")
    has_title = any(len(found[1].rstrip()) <= len(found[2]) for found in UNDERLINED.finditer(text))
    return has_title and SPHINX_MARK.search(text) is not None
