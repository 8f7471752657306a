"""Keep the files of a site's former build beside those of a new one.

For some minutes after a deployment, open pages and the caches of browsers name files of the build before. Without these
files a visitor gets the new build too, after a request that fails, and only if there is a network.
"""

import json
import re
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory

from semsearch.indexing.replacing import delete
from semsearch.site.data import FOLDER, HASH
from semsearch.site.page import BOX, CODE

# Bytes of the former build's files that the new one does not have: a tenth of what GitHub Pages allows for a site
MOST_FORMER_BYTES = 100_000_000
CODE_PATH = re.compile(rf"{CODE}/[0-9a-f]{{{HASH}}}")


def copy_former(last: Path, site: Path, code: str, most_bytes: int = MOST_FORMER_BYTES) -> int | None:
    """Copy the files of the former build of the site `last` into the new site, and return their bytes.

    code is the new site's folder of code. The former build is the one that `last` shows; if that is the new build
    again, the one that `last` keeps beside it. Files that the new build has too are not counted. If the others have
    more than most_bytes, none is copied, and the result is 0. The result is None without a former build.
    """
    folder = next((name for name in _codes(last) if name != code and (last / name / "site.json").is_file()), None)
    if folder is None:
        return None
    described = json.loads((last / folder / "site.json").read_bytes())
    names = [f"{folder}/{name}" for name in described["code"]]
    names += [entry["path"] for entry in described["files"].values()]
    only = [name for name in names if not (site / name).exists() and (last / name).exists()]
    total = sum((last / name).stat().st_size for name in only)
    if total > most_bytes:
        return 0
    for name in only:
        (site / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(last / name, site / name)
    return total


def _codes(site: Path) -> list[str]:
    """Return the folders of code of a site: first the one of the build that it shows, then that of its former one."""
    shown: list[str] = []
    if (site / BOX).is_file():
        shown = CODE_PATH.findall((site / BOX).read_text(encoding="utf-8"))[:1]
    return [*shown, *sorted(f"{CODE}/{path.name}" for path in (site / CODE).glob("*"))]


def keep_site(site: Path, keep: Path) -> None:
    """Copy what the next build needs of a site, which is then its former build, into the folder `keep`."""
    keep.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(dir=keep, prefix=".site-") as temporary:
        for name in (CODE, FOLDER):
            shutil.copytree(site / name, Path(temporary) / name)
        shutil.copyfile(site / BOX, Path(temporary) / BOX)
        replace_files(Path(temporary), keep, (BOX, CODE, FOLDER))


def replace_files(fresh: Path, site: Path, names: tuple[str, ...]) -> None:
    """Move these files and folders from the folder `fresh` into the site, in place of those that it has."""
    for name in names:
        delete(site / name)
        (fresh / name).rename(site / name)
