"""Stand-ins for what npm installs."""

from pathlib import Path

import pytest

from semsearch.site.packages import RUNTIME, WASM


@pytest.fixture(scope="session")
def npm(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for the packages."""
    folder: Path = tmp_path_factory.mktemp("npm")
    for name in (RUNTIME, WASM):
        path = folder / "node_modules" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"// {name}")
    return folder
