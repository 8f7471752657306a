"""DOCX: the HTML that mammoth makes of a document, after what mammoth does not know was rewritten.

Hidden text leaves, equations keep their text, an outline level makes a heading, and a footnote follows its paragraph.
Source: ECMA-376, part 1, https://ecma-international.org/publications-and-standards/standards/ecma-376/
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement
from zipfile import ZipFile

from semsearch.indexing.documents.document import Document, UnreadableError
from semsearch.indexing.documents.html import HEADINGS, read_html_text

OF_WORD = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
OF_MATH = "{http://schemas.openxmlformats.org/officeDocument/2006/math}"
TITLE_PROPERTY = "{http://purl.org/dc/elements/1.1/}title"
DOCUMENT, FOOTNOTES, STYLES = "word/document.xml", "word/footnotes.xml", "word/styles.xml"
CORE = "docProps/core.xml"
OUTLINE = "OutlineLevel"  # begins the names of the styles that outline levels become
STYLE_MAP = "\n".join(
    [
        # mammoth would join the words around them
        "br[type='page'] => br",
        "br[type='column'] => br",
        *(f"p.{OUTLINE}{level} => h{level}:fresh" for level in range(1, len(HEADINGS) + 1)),
    ]
)
OFF = ("0", "false", "none", "off")
OLE = b"\xd0\xcf\x11\xe0"  # first bytes of an encrypted file, and of files of Word before 2007


def read_docx(path: Path) -> Document:
    """Return a DOCX file as a document, without images.

    Its title is the first paragraph with the style Title, else the property of the document, else its first heading.
    Raises UnreadableError for an encrypted file, and what zipfile, ElementTree and mammoth raise for a broken one.
    """
    import mammoth

    content = path.read_bytes()
    if content.startswith(OLE):
        raise UnreadableError("encrypted, or a .doc of an older Word")
    rewritten, title = _rewrite(content)
    without_images = mammoth.images.img_element(lambda image: {})
    html = mammoth.convert_to_html(BytesIO(rewritten), style_map=STYLE_MAP, convert_image=without_images).value
    document = read_html_text(html, path, has_anchors=False)
    return replace(document, title=title or document.title)


def _rewrite(content: bytes) -> tuple[bytes, str]:
    """Return a DOCX that mammoth reads as a whole, and its title, "" if it states none."""
    written = BytesIO()
    with ZipFile(BytesIO(content)) as archive, ZipFile(written, "w") as copy:
        names = archive.namelist()
        parts = {
            name: ElementTree.fromstring(archive.read(name))  # noqa: S314  expat limits entities, and the process its memory
            for name in (DOCUMENT, FOOTNOTES, STYLES, CORE)
            if name in names
        }
        if DOCUMENT in parts:
            styles = _Styles(parts.get(STYLES))
            title = _title(parts, styles)
            _rewrite_body(parts[DOCUMENT], styles, _footnotes(parts.get(FOOTNOTES)))
        for name in names:
            if name == DOCUMENT:
                copy.writestr(name, ElementTree.tostring(parts[name], "utf-8"))
            else:
                copy.writestr(name, archive.read(name))
    if DOCUMENT not in parts:
        raise UnreadableError(f"broken: it has no {DOCUMENT}")
    return written.getvalue(), title


class _Styles:
    """The names and the outline levels of the styles of paragraphs, by id."""

    def __init__(self, styles: Element | None) -> None:
        found = [] if styles is None else styles.findall(f"{OF_WORD}style")
        self.names = {_value(style, "styleId"): _value(style.find(f"{OF_WORD}name")) for style in found}
        self.levels = {_value(style, "styleId"): _outline(style.find(f"{OF_WORD}pPr")) for style in found}


def _title(parts: dict[str, Element], styles: _Styles) -> str:
    for paragraph in parts[DOCUMENT].iter(f"{OF_WORD}p"):
        style = _style_of(paragraph)
        if "title" in (style.lower(), styles.names.get(style, "").lower()) and (text := _text(paragraph)):
            return text
    stated = None if CORE not in parts else parts[CORE].find(TITLE_PROPERTY)
    return "" if stated is None else " ".join((stated.text or "").split())


def _rewrite_body(document: Element, styles: _Styles, notes: dict[str, str]) -> None:
    for parent in list(document.iter()):
        for place, child in reversed(list(enumerate(parent))):
            if child.tag == f"{OF_WORD}r" and _is_hidden(child):
                parent.remove(child)
            elif child.tag == f"{OF_MATH}oMath":
                parent[place] = _run("".join(text.text or "" for text in child.iter(f"{OF_MATH}t")))
            elif child.tag == f"{OF_MATH}oMathPara":
                parent[place] = _run(" ".join(_equations(child)))
            elif child.tag == f"{OF_WORD}p":
                _set_heading(child, styles)
                for note in reversed(list(_notes_of(child, notes))):
                    paragraph = Element(f"{OF_WORD}p")
                    paragraph.append(_run(note))
                    parent.insert(place + 1, paragraph)


def _equations(paragraph: Element) -> Iterator[str]:
    for equation in paragraph.iter(f"{OF_MATH}oMath"):
        yield "".join(text.text or "" for text in equation.iter(f"{OF_MATH}t"))


def _set_heading(paragraph: Element, styles: _Styles) -> None:
    """Set the style of a heading if the paragraph, or its style, has an outline level and is no heading of Word's."""
    properties = paragraph.find(f"{OF_WORD}pPr")
    style = _style_of(paragraph)
    level = _outline(properties) or styles.levels.get(style, 0)
    if level and properties is not None and not styles.names.get(style, style).lower().startswith("heading"):
        for old in properties.findall(f"{OF_WORD}pStyle"):
            properties.remove(old)
        SubElement(properties, f"{OF_WORD}pStyle", {f"{OF_WORD}val": f"{OUTLINE}{level}"})


def _notes_of(paragraph: Element, notes: dict[str, str]) -> Iterator[str]:
    """Yield the footnotes of a paragraph, and remove their numbers from it."""
    for run in paragraph.iter(f"{OF_WORD}r"):
        for reference in run.findall(f"{OF_WORD}footnoteReference"):
            run.remove(reference)
            if text := notes.get(_value(reference, "id")):
                yield text


def _footnotes(footnotes: Element | None) -> dict[str, str]:
    found = [] if footnotes is None else footnotes.findall(f"{OF_WORD}footnote")
    return {_value(note, "id"): _text(note) for note in found}


def _is_hidden(run: Element) -> bool:
    hidden = run.find(f"{OF_WORD}rPr/{OF_WORD}vanish")
    return hidden is not None and _value(hidden).lower() not in OFF


def _outline(properties: Element | None) -> int:
    """Return the level of a heading from 1; 0 for text, or a level that HTML does not have."""
    level = None if properties is None else properties.find(f"{OF_WORD}outlineLvl")
    if level is None or not _value(level).isdigit() or int(_value(level)) >= len(HEADINGS):
        return 0
    return int(_value(level)) + 1


def _style_of(paragraph: Element) -> str:
    return _value(paragraph.find(f"{OF_WORD}pPr/{OF_WORD}pStyle"))


def _value(element: Element | None, name: str = "val") -> str:
    return "" if element is None else element.get(f"{OF_WORD}{name}", "")


def _text(element: Element) -> str:
    return " ".join("".join(_texts(element.iter())).split())


def _texts(elements: Iterable[Element]) -> Iterator[str]:
    for element in elements:
        if element.tag in (f"{OF_WORD}t", f"{OF_MATH}t"):
            yield element.text or ""
        elif element.tag in (f"{OF_WORD}tab", f"{OF_WORD}br", f"{OF_WORD}p"):
            yield " "


def _run(text: str) -> Element:
    run = Element(f"{OF_WORD}r")
    SubElement(run, f"{OF_WORD}t").text = text
    return run
