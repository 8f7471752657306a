"""The front matter of a Markdown file, YAML between lines of --- or TOML between lines of +++, as metadata.

Only the values of YAML's outermost mapping are read, one by one and without nested ones. So no alias or merge key can
grow into many values, one wrong value loses no other, and names are as written: `1`, `true` and `on` are three columns.
"""

import math
import re
import tomllib
from datetime import date, time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from yaml import Node, SafeLoader

FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"(?:[^\S\n]*(?:#.*)?\n)*+[\"']?[\w.-]+[\"']?\s*[:=]")  # begins front matter even if it is broken
SIXTY_FOUR_BITS = range(-(2**63), 2**63)


def read_front_matter(text: str) -> tuple[dict[str, object], int, str]:
    """Return the fields of a file's front matter, where the text after it begins, and what is wrong with the fields.

    Without front matter, these are no fields and 0. Dates become ISO 8601. Kept are strings, numbers, booleans, and
    lists of them, whose values become strings; numbers beyond 64 bits become strings too.
    """
    if (found := FRONT_MATTER.match(text)) is None:
        return {}, 0, ""
    import yaml

    is_toml = found[1] == "+++"
    try:
        fields = tomllib.loads(found[2].replace("\r\n", "\n")) if is_toml else _read_yaml(found[2])
        kept = {_valid(name): _kept(value) for name, value in (fields or {}).items()}
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        if not FIELD.match(found[2]):  # text between two lines across the page
            return {}, 0, ""
        reason = " ".join(str(error).split())
        return {}, found.end(), f"front matter left out, which is not {'TOML' if is_toml else 'YAML'}: {reason}"
    if fields is None:
        return {}, 0, ""
    return {name: value for name, value in kept.items() if name.strip() and value not in (None, "")}, found.end(), ""


def _read_yaml(text: str) -> dict[str, object] | None:
    """Return the fields of a mapping, None for other YAML. Raises yaml.YAMLError if it is not YAML."""
    import yaml

    loader = yaml.SafeLoader(text)  # it makes no objects
    root = loader.get_single_node()
    if not isinstance(root, yaml.MappingNode):
        return None
    return {name.value: _value(loader, value) for name, value in root.value if isinstance(name, yaml.ScalarNode)}


def _value(loader: "SafeLoader", node: "Node") -> object:
    """Return a scalar, or the scalars of a list. What is no value of its type, such as 2024-02-30, is a string."""
    import yaml

    if isinstance(node, yaml.SequenceNode):
        return [_value(loader, each) for each in node.value if isinstance(each, yaml.ScalarNode)]
    if not isinstance(node, yaml.ScalarNode):
        return None
    try:
        return loader.construct_object(node)
    except (ValueError, yaml.YAMLError):
        return str(node.value)


def _kept(value: object) -> object:
    if isinstance(value, list):
        return [str(_kept(each)) for each in value if not isinstance(each, list) and _kept(each) is not None]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, str):
        return _valid(value)
    if isinstance(value, int):
        return value if value in SIXTY_FOUR_BITS else str(value)
    return value if isinstance(value, float) and math.isfinite(value) else None


def _valid(text: str) -> str:
    r"""Return a text with each pair of surrogates, which YAML can escape as "\ud83e\udd86", as its one character.

    Other surrogates, which UTF-8 does not have, are replaced by U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
