"""Documents that tests write by hand: a PDF and a DOCX are small formats as long as they are plain."""

from collections.abc import Callable, Sequence
from pathlib import Path
from zipfile import ZipFile
from zlib import compress

from semsearch.indexing.documents.passages import DocumentPassage

ReadPassages = Callable[..., list[DocumentPassage]]  # the fixture `passages`

WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
HYPHEN = "\\001"
RESOURCES = "/Resources << /Font << /F1 3 0 R >> >>"
NO_PASSWORD_FITS = "/Filter /Standard /V 1 /R 2 /P -4 /O <" + "00" * 32 + "> /U <" + "11" * 32 + ">"


def write_pdf(
    path: Path,
    pages: Sequence[Sequence[str]],
    outline: Sequence[tuple[str, int]] = (),
    title: str = "",
    is_encrypted: bool = False,
    is_compressed: bool = False,
) -> Path:
    """Write a PDF with these lines on each page; outline has titles and the numbers of pages from 0.

    In a line, HYPHEN is the hyphen of Unicode.
    """
    encoding = "<< /BaseEncoding /WinAnsiEncoding /Differences [1 /uni2010] >>"
    objects = ["", "", f"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding {encoding} >>", ""]

    def add(content: str) -> int:
        objects.append(content)
        return len(objects)

    numbers = []
    for lines in pages:
        shown = "".join(f"({line}) Tj T*\n" for line in lines)
        stream = f"BT /F1 12 Tf 14 TL 50 700 Td\n{shown}ET"
        packed = compress(stream.encode(), 9).decode("latin-1") if is_compressed else stream
        filter = "/Filter /FlateDecode" if is_compressed else ""
        content = add(f"<< /Length {len(packed)} {filter} >>\nstream\n{packed}\nendstream")
        entry = f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 900 792] /Contents {content} 0 R {RESOURCES} >>"
        numbers.append(add(entry))
    first = len(objects) + 1
    for place, (name, page) in enumerate(outline):
        neighbours = f"/Next {first + place + 1} 0 R" if place + 1 < len(outline) else ""
        add(f"<< /Title ({name}) /Parent 4 0 R /Dest [{numbers[page]} 0 R /Fit] {neighbours} >>")
    objects[0] = "<< /Type /Catalog /Pages 2 0 R /Outlines 4 0 R >>"
    objects[1] = f"<< /Type /Pages /Kids [{' '.join(f'{n} 0 R' for n in numbers)}] /Count {len(numbers)} >>"
    objects[3] = f"<< /Type /Outlines /First {first} 0 R /Last {len(objects)} 0 R >>" if outline else "<< >>"
    information = add(f"<< /Title ({title}) >>")
    written, places = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        places.append(len(written))
        written += f"{number} 0 obj\n{each}\nendobj\n".encode("latin-1")
    encrypted = f"/Encrypt << {NO_PASSWORD_FITS} >> /ID [<00> <00>]" if is_encrypted else ""
    table = "".join(f"{place:010} 00000 n \n" for place in places)
    trailer = f"<< /Size {len(objects) + 1} /Root 1 0 R /Info {information} 0 R {encrypted} >>"
    written += (
        f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}"
        f"trailer\n{trailer}\nstartxref\n{len(written)}\n%%EOF\n"
    ).encode()
    path.write_bytes(written)
    return path


def write_docx(path: Path, body: str, chapter: str = "") -> Path:
    """Write a DOCX with this body in WordprocessingML. The styles Heading1 to Heading3, and Kop2 of a Dutch Word, are
    headings.

    chapter has the properties of a style Chapter.
    """
    styles = "".join(
        f'<w:style w:type="paragraph" w:styleId="Heading{n}"><w:name w:val="heading {n}"/></w:style>' for n in (1, 2, 3)
    )
    styles += '<w:style w:type="paragraph" w:styleId="Kop2"><w:name w:val="heading 2"/></w:style>'
    styles += f'<w:style w:type="paragraph" w:styleId="Chapter"><w:name w:val="Chapter"/>{chapter}</w:style>'
    types = '<Default Extension="xml" ContentType="application/xml"/>'
    parts = {
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types">{types}</Types>',
        "_rels/.rels": relationship("officeDocument", "word/document.xml"),
        "word/_rels/document.xml.rels": relationship("styles", "styles.xml"),
        "word/styles.xml": f'<w:styles xmlns:w="{WORD}">{styles}</w:styles>',
        "word/document.xml": f'<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>',
    }
    with ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return path


def relationship(kind: str, target: str) -> str:
    """Return a part of a DOCX that names another part."""
    named = f'<Relationship Id="a" Type="{OFFICE}/{kind}" Target="{target}"/>'
    return f'<Relationships xmlns="{PACKAGE}/relationships">{named}</Relationships>'


def paragraph(text: str, style: str = "") -> str:
    """Return a paragraph of a DOCX."""
    named = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{named}<w:r><w:t>{text}</w:t></w:r></w:p>"
