"""Front matter: the fields that a Markdown file states before its text."""

import json
import math
import re
import tomllib
from collections.abc import Mapping
from datetime import date, time
from typing import Any

from semsearch.indexing.documents.document import valid_unicode

FRONT_MATTER = re.compile(r"\A(---|\+\+\+)[ \t]*\r?\n(.*?)^(?:\1|\.\.\.)[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"(?:[^\S\n]*(?:#.*)?\n)*+[\"']?[\w.-]+[\"']?\s*[:=]")  # begins front matter even if it is broken
ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d")
SIXTY_FOUR_BITS = range(-(2**63), 2**63)
LATER = "a publishDate in the future"
UNPUBLISHED = {"draft": True, "unlisted": True, "published": False, "publish": False, "noindex": True}


def read_front_matter(text: str) -> tuple[dict[str, object], int, str]:
    """Return the fields of a file's front matter, where the text after it begins, and what is wrong with the fields.

    Front matter is YAML between lines of ---, TOML between lines of +++, or an object of JSON. Without it, these are no
    fields and 0. Dates become ISO 8601. Kept are strings, numbers, booleans, and
    lists of them, whose values become strings; numbers beyond 64 bits become strings too.
    """
    if text.startswith("{"):
        return _read_json(text)
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
    if fields is None and found[2].strip():  # comments alone
        return {}, found.end(), ""
    if not isinstance(fields, dict):
        return {}, 0, ""
    return _kept_fields(fields), found.end(), ""


def _read_json(text: str) -> tuple[dict[str, object], int, str]:
    """Return the fields of an object of JSON that is alone on its lines at the beginning of a text."""
    try:
        fields, end = json.JSONDecoder().raw_decode(text)
    except (ValueError, RecursionError):  # a text that begins with a brace
        return {}, 0, ""
    if text[end : end + 1] not in ("", "\r", "\n"):
        return {}, 0, ""
    return _kept_fields(fields), end, ""


def why_unlisted(fields: Mapping[str, object], today: date) -> str:
    """Return why front matter says that a page is not to be found, such as "draft: true"; "" if it does not."""
    stated = {name.lower(): value for name, value in fields.items()}
    for name, value in UNPUBLISHED.items():
        if stated.get(name) is value:
            return f"{name}: {str(value).lower()}"
    if "noindex" in str(stated.get("robots", "")).lower():
        return "noindex"
    day = ISO_DATE.match(str(stated.get("publishdate", "")))
    if day and day[0] > today.isoformat():
        return LATER
    return ""


def _kept_fields(fields: Mapping[Any, object]) -> dict[str, object]:
    kept = {valid_unicode(str(name)): _kept(value) for name, value in fields.items()}
    return {name: value for name, value in kept.items() if name.strip() and value not in (None, "")}


def _kept(value: object) -> object:
    if isinstance(value, list):
        return [str(_kept(each)) for each in value if not isinstance(each, list) and _kept(each) is not None]
    if isinstance(value, date | time):  # a datetime is a date
        return value.isoformat()
    if isinstance(value, str):
        return valid_unicode(value)
    if isinstance(value, int):
        if value in SIXTY_FOUR_BITS:
            return value
        return str(value)
    if isinstance(value, float) and math.isfinite(value):
        return value
    return None
