"""reStructuredText: the HTML that docutils makes of it, and the text of what only Sphinx knows.

Nothing that a file names is read, neither another file nor an address. Left out: what Sphinx takes from the source of a
program.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from semsearch.indexing.documents.document import Document, decode
from semsearch.indexing.documents.html import read_html_text
from semsearch.indexing.documents.rst_lines import mark_lines, without_marks

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
NO_TEXT = frozenset(["toctree", "index", "highlight", "meta"])
NO_ARGUMENT = frozenset(["only", "tabularcolumns", "rst-class", "container"])  # directives whose argument is no text
CODE_DIRECTIVES = frozenset(["code-block", "sourcecode", "doctest", "testcode", "prompt"])
OVERRIDDEN = CODE_DIRECTIVES | {"class"}  # directives of docutils that Sphinx reads in another way
DESCRIBED = re.compile(  # directives that describe a name
    r"(?:\w+:)?(function|method|class|classmethod|staticmethod|attribute|data|exception|property|option|cmdoption|envvar"
    r"|confval|describe|decorator|object|setting|command|event|directive|directive:option|role)"
)
ID_PREFIXES = {"option": "cmdoption", "cmdoption": "cmdoption", "envvar": "envvar", "confval": "confval"}
NO_ID = ("describe", "object", "setting", "command")
ID_PREFIXES |= {"event": "event", "directive": "directive", "role": "role"}
DESCRIBED_NAME = re.compile(r"[\w.:]+(?:[-\w.:]*\w)?")
SIGNATURE_WORD = re.compile(r"^(?:(?:abstract|async|class|classmethod|static|staticmethod|final)\s+)+")
TARGET = re.compile(r"\s*<[^<>]*>$")  # in a role: `title <target>`


def read_rst(path: Path) -> Document:
    """Return a file of reStructuredText as a document. Raises UnreadableError if it is not UTF-8."""
    from docutils.core import publish_parts
    from docutils.writers.html5_polyglot import Writer

    class MarkingWriter(Writer):  # type: ignore[misc]  # its types are not installed
        """Writes the HTML of a tree whose lines are marked."""

        def translate(self) -> None:
            mark_lines(self.document, text)
            super().translate()

    _register()
    text = decode(path.read_bytes())
    parts = publish_parts(text, source_path=str(path), writer=MarkingWriter(), settings_overrides=LOCKED)
    body = str(parts["body"])  # it does not have fields at the beginning, such as :orphan:
    return without_marks(read_html_text(body, path), text)


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
            argument = " ".join(" ".join(self.arguments).split())
            if not hasattr(self.state.document, "around"):
                self.state.document.around = _Around()
            around: _Around = self.state.document.around
            if self.name == "program":
                around.program = "" if argument == "None" else argument.replace(" ", "-")
                return []
            if self.name.removeprefix("py:") in ("module", "currentmodule"):
                around.module = "" if argument == "None" else argument
                return []
            if self.name in NO_TEXT:
                return []
            if self.name in CODE_DIRECTIVES:
                return [_at(self.content_offset + 1, nodes.literal_block("", "\n".join(self.content)))]
            described = DESCRIBED.fullmatch(self.name)
            content = nodes.container()
            if described and argument:
                id = around.id_of(described[1], argument)
                with around.within(id or around.name):
                    self.state.nested_parse(self.content, self.content_offset, content)
                return [_description(id, _at(self.lineno, nodes.term("", self._lines())), content)]
            self.state.nested_parse(self.content, self.content_offset, content, match_titles=self.name == "only")
            if argument and self.name not in NO_ARGUMENT:
                content.insert(0, _at(self.lineno, nodes.paragraph("", self._lines())))
            return list(content.children)

        def _lines(self) -> str:
            """Return the argument in the lines of the file."""
            return "\n".join(line.strip() for line in " ".join(self.arguments).splitlines())

    def text_of_role(name: str, raw: str, text: str, *others: Any, **options: Any) -> "tuple[list[Node], list[Node]]":
        shown = TARGET.sub("", text)
        if shown.startswith("~"):
            shown = shown.rpartition(".")[2]
        return [nodes.literal("", shown.lstrip("!~"))], []

    known_directive, known_role = directives.directive, roles.role

    def find_directive(name: str, *others: Any) -> tuple[Any, list[Any]]:
        found, _ = known_directive(name, *others)
        if found is None or name in OVERRIDDEN:
            found = OfSphinx
        return found, []

    def find_role(name: str, *others: Any) -> tuple[Any, list[Any]]:
        found, _ = known_role(name, *others)
        return found or text_of_role, []

    directives.directive = find_directive
    roles.role = find_role


@dataclass(slots=True)
class _Around:
    """What is around a described name, and makes a part of its id."""

    program: str = ""  # whose options follow
    module: str = ""
    name: str = ""  # the name whose description is read

    def id_of(self, kind: str, signature: str) -> str:
        """Return the id that Sphinx gives a described name; "" if the signature has no name."""
        found = DESCRIBED_NAME.search(SIGNATURE_WORD.sub("", signature).removeprefix("..").lstrip("- "))
        if found is None or kind in NO_ID:
            return ""
        if kind in ID_PREFIXES:
            program = self.program if ID_PREFIXES[kind] == "cmdoption" else ""
            return "-".join(filter(None, [ID_PREFIXES[kind], program, found[0].strip(":").replace(":", "-")]))
        name, outer = found[0], self.name or self.module
        for part in range(outer.count(".") + 1):  # the signature can begin with a part of what is around it
            rest = ".".join(outer.split(".")[part:])
            if name == rest or name.startswith(f"{rest}."):
                return ".".join(filter(None, [*outer.split(".")[:part], name]))
        return ".".join(filter(None, [outer, name]))

    @contextmanager
    def within(self, name: str) -> Iterator[None]:
        """Let names in a description be those of what it describes."""
        before, self.name = self.name, name
        yield
        self.name = before


class _AnyOptions(dict[str, Any]):
    """The options of a directive that nobody knows: all are accepted."""

    def __bool__(self) -> bool:
        return True

    def __getitem__(self, name: str) -> Any:
        return str


def _at(line: int, node: "Node") -> "Node":
    """Return a node after stating its line, as docutils does for its own ones."""
    node.line = line
    return node


def _description(id: str, term: "Node", content: "Node") -> "Node":
    """Return a described name with its id, and its description."""
    from docutils import nodes

    if id:
        term["ids"] = [id]
    item = nodes.definition_list_item("", term, nodes.definition("", *content.children))
    return nodes.definition_list("", item)
