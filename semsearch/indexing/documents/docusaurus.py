"""The address, the language and the version that Docusaurus gives a Markdown file of a site.

It has the defaults of Docusaurus 3: documents at docs/, posts at blog/, the newest version without its name, English
without a prefix. Left out: other paths and prefixes that a docusaurus.config states, since it is a program.
Source: https://docusaurus.io/docs/create-doc and https://docusaurus.io/docs/versioning
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from urllib.parse import quote

from semsearch.indexing.documents.looks import Looks, read_beside
from semsearch.indexing.file_choice import SITE_VERSIONS

NUMBER = re.compile(r"^\d+\s*[-_.]+\s*(?=[^-_.\s])")  # orders files; it is no part of an address
NO_NUMBER = re.compile(r"^\d+(?:[-_.]\d+)+")  # a date or a version is none
POST_DATE = re.compile(r"^(\d{4})-(\d\d)-(\d\d)-")
PLUGIN = re.compile(r"docusaurus-plugin-content-(docs|blog|pages)\Z")
PREFIXLESS = "en"  # the default locale
CONTENT_KINDS = ("docs", "blog", "pages")
VERSION_FOLDER = "version-"  # begins the name of a version's folder
CURRENT = "current"  # name of the newest documents, which have no version yet
NEXT = "next"  # their part of an address, if there are versions


@dataclass(frozen=True, slots=True)
class SitePage:
    """A page of a site: its path in it, and its language and version, "" where the site's files state none."""

    site: Path
    path: str
    language: str = ""
    version: str = ""

    def address(self, folder: Path, base_url: str) -> str:
        """Return the address of the page; base_url is that of a folder of the site, or of the site."""
        path = self.path
        if folder.resolve() != self.site:
            named = folder.resolve().relative_to(self.site)
            whole = f"{named.as_posix()}/"
            path = path.removeprefix(whole if path.startswith(whole) else f"{named.parts[0]}/")
        if base_url:
            return f"{base_url.rstrip('/')}/{quote(path)}"
        return quote(path) or "./"


def page_of(site: Path, file: Path, fields: Mapping[str, object], looks: Looks) -> SitePage:
    """Return the page that a site makes of a file, whose front matter has these fields.

    `looks` gets what was looked at.
    """
    parts = list(file.relative_to(site).parts)
    language = version = ""
    kind = parts.pop(0) if len(parts) > 1 else "pages"
    if kind == "i18n" and len(parts) > 2 and (content := PLUGIN.match(parts[1])):
        language, kind = parts[0], content[1]
        parts = parts[2:]
        if kind == "docs" and len(parts) > 1:
            version = parts.pop(0).removeprefix(VERSION_FOLDER)
    elif kind == "versioned_docs" and len(parts) > 1:
        version, kind = parts.pop(0).removeprefix(VERSION_FOLDER), "docs"
    elif kind == "docs":
        version = CURRENT
    elif kind == "src":
        parts, kind = parts[1:] or parts, "pages"
    if kind == "docs":
        versions = _versions(site, looks)
        if not versions:
            version = ""
        path = _path_of_document(parts, fields, version, versions)
    elif kind == "blog":
        path = _path_of_post(parts, fields)
    else:
        if kind not in CONTENT_KINDS:  # a folder that a plugin can show
            parts.insert(0, kind)
        path = "/".join(_without_index(parts))
    prefix = language
    if language == PREFIXLESS:
        prefix = ""
    return SitePage(site, "/".join(filter(None, [prefix, path])), language, version)


def _versions(site: Path, looks: Looks) -> list[str]:
    """Return the versions of a site, the newest first."""
    listed = read_beside(site / SITE_VERSIONS, looks)
    if listed is None:
        return []
    try:
        return [str(version) for version in json.loads(listed.decode())]
    except (ValueError, TypeError):  # Docusaurus refuses such a file
        return []


def _path_of_document(parts: list[str], fields: Mapping[str, object], version: str, versions: list[str]) -> str:
    base = ["docs"]
    if version == CURRENT:
        base.append(NEXT)
    elif version and version != versions[0]:
        base.append(version)
    slug = fields.get("slug")
    if isinstance(slug, str) and slug.startswith("/"):
        return "/".join([*base, slug.strip("/")])
    folders = [_without_number(part) for part in parts[:-1]]
    if isinstance(slug, str) and slug:
        return "/".join([*base, *folders, slug.strip("/")])
    if isinstance(fields.get("id"), str):
        return "/".join([*base, *folders, str(fields["id"])])
    stem, dot, suffix = parts[-1].rpartition(".")
    return "/".join([*base, *_without_index([*folders, _without_number(stem) + dot + suffix])])


def _path_of_post(parts: list[str], fields: Mapping[str, object]) -> str:
    slug = fields.get("slug")
    if isinstance(slug, str) and slug:
        return f"blog/{slug.strip('/')}"
    path = "/".join(_without_index(parts)).removesuffix("/")
    return "blog/" + POST_DATE.sub(r"\1/\2/\3/", path)


def _without_number(name: str) -> str:
    if NO_NUMBER.match(name):
        return name
    return NUMBER.sub("", name)


def _without_index(parts: list[str]) -> list[str]:
    """Return the parts of a path without the suffix; an index, a README or a file like its folder is the folder's."""
    folders, stem = parts[:-1], PurePosixPath(parts[-1]).stem
    if stem.lower() in ("index", "readme", *(folder.lower() for folder in folders[-1:])):
        return [*folders, ""]
    return [*folders, stem]
