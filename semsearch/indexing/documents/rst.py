"""reStructuredText: the HTML that docutils makes of it, and the text of what only Sphinx knows.

Nothing that a file names is read, neither another file nor an address. Left out: what Sphinx takes from the source of a
program, and the ids of a name within the name of a class.
"""

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.indexing.documents.document import Document, decode
from semsearch.indexing.documents.html import read_html_text

if TYPE_CHECKING:
    from docutils.nodes import Node

LOCKED = {  # settings under which docutils reads no other file, prints nothing and stops at no error
    "file_insertion_enabled": False,
    "raw_enabled": False,
    "_disable_config": True,
    "report_level": 5,
    "halt_level": 5,
    "doctitle_xform": False,  # a title is a section, as for Sphinx
    "initial_header_level": 1,
    "auto_id_prefix": "id",  # that of Sphinx
    "line_length_limit": 1_000_000,
    "embed_stylesheet": False,
    "stylesheet_path": None,
    "input_encoding": "unicode",
}
NO_TEXT = frozenset(
    ["toctree", "index", "highlight", "currentmodule", "module", "py:module", "py:currentmodule", "meta"]
)
NO_ARGUMENT = frozenset(["only", "tabularcolumns", "rst-class", "container"])  # directives whose argument is no text
CODE_DIRECTIVES = frozenset(["code-block", "sourcecode", "doctest", "testcode", "prompt"])
DESCRIBED = re.compile(  # directives that describe a name
    r"(?:\w+:)?(function|method|class|classmethod|staticmethod|attribute|data|exception|property|option|cmdoption|envvar"
    r"|confval|describe|decorator|object|setting|command)"
)
ID_PREFIXES = {"option": "cmdoption-", "cmdoption": "cmdoption-", "envvar": "envvar-", "confval": "confval-"}
DESCRIBED_NAME = re.compile(r"[\w.:]+(?:[-\w.:]*\w)?")
TARGET = re.compile(r"\s*<[^<>]*>$")  # in a role: `title <target>`


def read_rst(path: Path) -> Document:
    """Return a file of reStructuredText as a document. Raises UnreadableError if it is not UTF-8."""
    from docutils.core import publish_parts

    _register()
    text = decode(path.read_bytes())
    parts = publish_parts(text, source_path=str(path), writer="html5", settings_overrides=LOCKED)
    return read_html_text(str(parts["body"]), path)  # without fields at the beginning, such as :orphan:


@cache
def _register() -> None:
    """Let docutils read the directives and roles that it does not know. A process has one list of them."""
    from docutils import nodes
    from docutils.parsers.rst import Directive, directives, roles

    class OfSphinx(Directive):  # type: ignore[misc]  # its types are not installed
        """A directive that only Sphinx knows."""

        has_content = True
        optional_arguments = 1
        final_argument_whitespace = True
        option_spec = _AnyOptions()

        def run(self) -> "list[Node]":
            """Return the argument and the content as text."""
            if self.name in NO_TEXT:
                return []
            if self.name in CODE_DIRECTIVES:
                return [nodes.literal_block("", "\n".join(self.content))]
            argument = " ".join(" ".join(self.arguments).split())
            content = nodes.container()
            self.state.nested_parse(self.content, self.content_offset, content)
            described = DESCRIBED.fullmatch(self.name)
            if described and argument:
                return [_description(described[1], argument, content)]
            if argument and self.name not in NO_ARGUMENT:
                content.insert(0, nodes.paragraph("", argument))
            return list(content.children)

    def text_of_role(name: str, raw: str, text: str, *others: Any, **options: Any) -> "tuple[list[Node], list[Node]]":
        shown = TARGET.sub("", text)
        if shown.startswith("~"):
            shown = shown.rpartition(".")[2]
        return [nodes.literal("", shown.lstrip("!~"))], []

    known_directive, known_role = directives.directive, roles.role

    def find_directive(name: str, *others: Any) -> tuple[Any, list[Any]]:
        found, _ = known_directive(name, *others)
        if found is None or name in CODE_DIRECTIVES:
            found = OfSphinx
        return found, []

    def find_role(name: str, *others: Any) -> tuple[Any, list[Any]]:
        found, _ = known_role(name, *others)
        return found or text_of_role, []

    directives.directive = find_directive
    roles.role = find_role


class _AnyOptions(dict[str, Any]):
    """The options of a directive that nobody knows: all are accepted."""

    def __bool__(self) -> bool:
        return True

    def __contains__(self, name: object) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return str


def _description(kind: str, signature: str, content: "Node") -> "Node":
    """Return a described name, with the id that Sphinx gives it, and its description."""
    from docutils import nodes

    term = nodes.term("", signature)
    if found := DESCRIBED_NAME.search(signature.lstrip("-")):
        term["ids"] = [ID_PREFIXES.get(kind, "") + found[0]]
    item = nodes.definition_list_item("", term, nodes.definition("", *content.children))
    return nodes.definition_list("", item)
