"""Front matter: the fields that a Markdown file states before its text."""

import math
import re
import tomllib
from datetime import date, time

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
        if is_toml:
            fields = tomllib.loads(found[2].replace("\r\n", "\n"))
        else:
            fields = yaml.safe_load(found[2])
    except (ValueError, RecursionError, yaml.YAMLError) as error:
        if not FIELD.match(found[2]):  # text between two lines across the page
            return {}, 0, ""
        reason = " ".join(str(error).split())
        return {}, found.end(), f"front matter left out, which is not {'TOML' if is_toml else 'YAML'}: {reason}"
    if not isinstance(fields, dict):
        return {}, 0, ""
    kept = {_valid(str(name)): _kept(value) for name, value in fields.items()}
    return {name: value for name, value in kept.items() if name.strip() and value not in (None, "")}, found.end(), ""


def _kept(value: object) -> object:
    if isinstance(value, list):
        return [str(_kept(each)) for each in value if not isinstance(each, list) and _kept(each) is not None]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, str):
        return _valid(value)
    if isinstance(value, int):
        if value in SIXTY_FOUR_BITS:
            return value
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return None


def _valid(text: str) -> str:
    r"""Return a text with each pair of surrogates, which YAML can escape as "\ud83e\udd86", as its one character.

    Other surrogates, which UTF-8 does not have, are replaced by U+FFFD.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
