"""Documents become passages: a piece of one section each, with its place in the document and the path of its headings.

A reader of each format returns the text, headings and blocks of a document. `passages` divides them.
Left out: text in images (OCR), the layout of a PDF beyond its lines, and comments and footnotes of a DOCX.
"""
