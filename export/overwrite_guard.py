"""Keep an export from removing the user's own texts without --remove-corpus: their file can be gone."""

from pathlib import Path

from export.corpus.python_documentation import NAME as DOCUMENTATION
from function.engine.bundle import INDEX, PASSAGES, BundleError, read_manifest


def refuse_to_remove_texts(out: Path, brings_documentation: bool) -> None:
    """Raise BundleError if the folder holds the user's own texts and the new bundle would remove them.

    If brings_documentation is true, the new bundle holds Python's own documentation, and may replace a bundle with the
    same. Files of texts without a readable manifest count as the user's own.
    """
    try:
        index = read_manifest(out).index
    except BundleError:  # the files are checked instead
        index = None
    files = [name for name in (INDEX, PASSAGES) if (out / name).exists()]
    if index is not None:
        if brings_documentation and index.corpus == DOCUMENTATION:
            return
        found = f"an index of {index.rows:,} texts from {index.corpus}"
    elif files:
        found = f"{' and '.join(files)}, and no manifest that says which texts they hold"
    else:
        return
    name_them = "name your texts with --corpus FILE, " if brings_documentation else ""
    raise BundleError(
        f"{out}: holds {found}; this command would remove them, expected a folder without texts; {name_them}choose "
        "another folder with --out, or add --remove-corpus"
    )
