"""Texts of one's own are removed only when that is asked for: embedding them took long, and their file may be gone."""

from pathlib import Path

from export.python_documentation import NAME as DOCUMENTATION
from function.engine.bundle import INDEX, PASSAGES, BundleError, IndexInfo, read_manifest


def refuse_to_remove_texts(out: Path, brings_documentation: bool) -> None:
    """Raise BundleError if the folder holds texts that a bundle in its place, without a corpus file, would remove.

    brings_documentation says that the new bundle will hold Python's own documentation, which then may replace itself.
    Files of texts that no readable manifest describes count as texts of one's own.
    """
    index = _read_index_info(out)
    files = [name for name in (INDEX, PASSAGES) if (out / name).exists()]
    if index is not None:
        if brings_documentation and index.corpus == DOCUMENTATION:
            return
        found = f"an index of {index.rows:,} texts from {index.corpus}, created {index.created}"
    elif files:
        found = f"{' and '.join(files)}, and no manifest that says which texts they hold"
    else:
        return
    name_them = "name your texts with --corpus FILE, " if brings_documentation else ""
    raise BundleError(
        f"{out}: holds {found}; this command would remove them, expected a folder without texts; {name_them}choose "
        "another folder with --out, or add --remove-corpus"
    )


def _read_index_info(out: Path) -> IndexInfo | None:
    """Return what the manifest says of the texts, None if there is no manifest, no readable one or no texts in it."""
    try:
        return read_manifest(out).index
    except BundleError:  # the caller looks at the files themselves
        return None
