"""The front matter of a Markdown file, YAML between lines of --- or TOML between lines of +++, as metadata.

PyYAML's safe loader reads it. It makes no objects, and aliases that repeat a list are dropped with all nested values.
"""

import math
import re
import tomllib
from datetime import date, time

from export.documents.document import UnreadableError

FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)


def read_front_matter(text: str) -> tuple[dict[str, object], int]:
    """Return the fields of a file's front matter, and where the text after it begins; no fields and 0 without one.

    Dates become ISO 8601. Kept are strings, numbers, booleans, and lists of them, whose values become strings.
    Raises UnreadableError if it is not YAML or TOML.
    """
    found = FRONT_MATTER.match(text)
    if found is None:
        return {}, 0
    try:
        fields = tomllib.loads(found[2].replace("\r\n", "\n")) if found[1] == "+++" else _read_yaml(found[2])
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"front matter that cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(fields, dict):  # a line across the page, and text
        return {}, 0
    kept = {str(name): _kept(value) for name, value in fields.items()}
    return {name: value for name, value in kept.items() if value not in (None, "")}, found.end()


def _read_yaml(text: str) -> object:
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from error


def _kept(value: object) -> object:
    if isinstance(value, list):
        simple = [_kept(each) for each in value if not isinstance(each, list)]
        return [each if isinstance(each, str) else str(each) for each in simple if each is not None]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value if isinstance(value, str | int | float) else None
