"""Write a zip of compiled pure packages, stored without compression, that Python can import from.

`bench/ablation.py` measures whether that starts sooner, and runs this file by itself inside the image. Packages with
compiled extensions cannot be in the zip, because the system's loader opens files only.
"""

import importlib.util
import sys
import sysconfig
import zipfile
from pathlib import Path


def main(out: Path, packages: Path) -> None:
    """Write `out` with the bytecode of the standard library and of the packages in a folder that are pure Python."""
    library = Path(sysconfig.get_path("stdlib"))
    native = {path.relative_to(root).parts[0] for root in (library, packages) for path in root.rglob("*.so")}
    native |= {"site-packages", "test", "idlelib", "lib-dynload", "function", "bundle"}
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for root in (library, packages):
            for source in sorted(root.rglob("*.py")):
                name = source.relative_to(root)
                bytecode = Path(importlib.util.cache_from_source(str(source)))
                if name.parts[0] not in native and bytecode.is_file():
                    archive.write(bytecode, name.with_suffix(".pyc"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
