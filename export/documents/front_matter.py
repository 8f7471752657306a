"""The front matter of a Markdown file, YAML between lines of --- or TOML between lines of +++, as metadata.

PyYAML's safe loader makes no objects, and nested values are dropped, so an alias cannot grow into many values.
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
    if (found := FRONT_MATTER.match(text)) is None:
        return {}, 0
    import yaml

    class Loader(yaml.SafeLoader):  # type: ignore[misc]  # PyYAML has no types
        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            """Merge each pair of a key and a value once: PyYAML repeats them, twice as many with each level."""
            super().flatten_mapping(node)
            node.value = list(dict.fromkeys(reversed(node.value)))[::-1]

    try:
        is_toml = found[1] == "+++"
        fields = tomllib.loads(found[2].replace("\r\n", "\n")) if is_toml else Loader(found[2]).get_single_data()
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        raise UnreadableError(f"front matter that cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(fields, dict):  # a line across the page, and text
        return {}, 0
    kept = {str(name): _kept(value) for name, value in fields.items()}
    return {name: value for name, value in kept.items() if value not in (None, "")}, found.end()


def _kept(value: object) -> object:
    if isinstance(value, list):
        return [str(_kept(each)) for each in value if not isinstance(each, list) and _kept(each) is not None]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    is_infinite = isinstance(value, float) and not math.isfinite(value)
    return value if isinstance(value, str | int | float) and not is_infinite else None
