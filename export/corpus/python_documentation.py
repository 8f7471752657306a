"""The default corpus: the documentation of the running Python's standard library, some 6,000 passages.

python_source.py parses Python modules. Modules written in C have no such source: the modules in IN_C are imported,
which has no side effects, and the docstrings of their objects are read. Objects without a docstring are left out.
"""

import importlib
import inspect
import itertools
import os
import re
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from export.corpus import Corpus, CorpusError
from export.corpus.formats import compact_json
from export.corpus.python_source import Documented, entries_from_source, parse_modules

NAME = "Python's own documentation"  # what a manifest calls this corpus

# Modules without side effects of importing, whose everyday functions are documented in their C code alone.
IN_C = (
    *("builtins", "array", "binascii", "bz2", "cmath", "collections", "contextvars", "csv"),
    *("functools", "gc", "io", "itertools", "lzma", "math", "os", "queue", "random", "re"),
    *("select", "struct", "sys", "time", "unicodedata", "weakref", "zlib"),
)

ENOUGH_WORDS = 12  # words of a text; a shorter first paragraph is followed by the next one
MOST_WORDS = 60  # words of a text: about 80 tokens, and sentence embedders read 128 or more


def python_documentation() -> Corpus:
    """Return a passage for each public module, class, function, method and property, sorted by qualified name.

    A text reads "zipfile.ZipFile.extractall: Extract all members …"; its id is the qualified name, and its
    metadata is a JSON object with kind, module and signature.
    Raises CorpusError if this Python was installed without the sources of its library.
    """
    folder = Path(sysconfig.get_path("stdlib"))
    trees = dict(parse_modules(folder))
    if "json" not in trees:
        raise CorpusError(f"{folder}: found no sources of the library, expected its *.py; name texts with --corpus")
    entries: dict[str, Documented] = {}
    for entry in [*entries_from_source(trees), *_from_c()]:
        if entry.doc.strip():
            entries.setdefault(entry.id, entry)
    ordered = [entries[key] for key in sorted(entries)]
    metadata = [{"kind": entry.kind, "module": entry.module, "signature": entry.signature} for entry in ordered]
    return Corpus(
        texts=[f"{entry.id}: {_summary(entry.doc)}" for entry in ordered],
        ids=[entry.id for entry in ordered],
        metadata=[compact_json(each) for each in metadata],
        empty_texts=0,
    )


def _summary(doc: str) -> str:
    """Return the first paragraphs of a docstring, ENOUGH_WORDS to MOST_WORDS of them, on one line."""
    lines = re.split(r"(?:\n.*:)?\s*\n\s*>>>", inspect.cleandoc(doc))[0].splitlines()  # no examples
    prose = list(itertools.dropwhile(lambda line: not line.strip() or _SIGNATURE.fullmatch(line), lines))
    words: list[str] = []
    is_prose = False
    for paragraph in re.split(r"\n\s*\n", "\n".join(prose or lines)):
        if is_prose and len(words) >= ENOUGH_WORDS:
            break
        is_prose = _CALL.match(paragraph) is None
        words += [word for word in paragraph.split() if not _RULE.fullmatch(word)]
    return " ".join(words) if len(words) <= MOST_WORDS else " ".join(words[:MOST_WORDS]) + " …"


_CALL = re.compile(r"(\w+ = )?[\w.]+\(")
_SIGNATURE = re.compile(_CALL.pattern + r".*\)(\s*-+>\s*[\w-]+( \w+){0,2}\.?)?\s*")  # "time() -> float"
_RULE = re.compile(r"[-=~*#]{3,}")  # a line under a heading


def _from_c() -> Iterator[Documented]:
    """Yield the functions and classes that the modules of IN_C implement in C."""
    for module in IN_C:
        inside = {module, f"_{module}", os.name if module == "os" else module}
        for name, value in sorted(vars(importlib.import_module(module)).items()):
            is_own = module == "builtins" or getattr(value, "__module__", None) in inside
            if name.startswith("_") or not is_own:
                continue
            kind = "class" if inspect.isclass(value) else "function" if inspect.isroutine(value) else ""
            if kind:
                yield Documented(module, name, kind, _signature(name, kind, value), value.__doc__ or "")
            for member, attribute in sorted(vars(value).items()) if kind == "class" else ():
                if not member.startswith("_") and inspect.isroutine(attribute):
                    signature, doc = _signature(member, "method", attribute), attribute.__doc__ or ""
                    yield Documented(module, f"{name}.{member}", "method", signature, doc)


def _signature(name: str, kind: str, value: object) -> str:
    """Return the signature that the source of a C object states, "(...)" if it states none."""
    stated = getattr(getattr(value, "__func__", value), "__text_signature__", None) or "(...)"
    stated = " ".join(stated.replace("<unrepresentable>", "...").split())
    if kind == "method":
        return name + stated.replace("$type", "cls").replace("$", "")
    return name + re.sub(r"\$\w+(, /)?(, )?", "", stated, count=1)
