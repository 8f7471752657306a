"""Install each extra from the wheels in dist/, in an environment of its own, and use what it is for.

    python3 -m tests.extras [EXTRA...]

The Python that runs this makes the environments. PyTorch is installed first where an extra needs it, as a CPU build.
"""

import os
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
QUERY = """
import subprocess, sys
from pathlib import Path
Path("docs").mkdir()
Path("docs/geese.md").write_text("# Geese\\n\\nAn angry goose crossed the road.")
command = [str(Path(sys.executable).with_name("semsearch")), "query", "docs", "a furious bird"]
assert "geese.md" in subprocess.run(command, check=True, capture_output=True, text=True).stdout
"""
# What each extra is for
USES = {
    "index": QUERY,
    "server": "import semsearch.server.workers, semsearch.server.metrics",
    "documents": "import pyromark, selectolax, docutils, pypdfium2, mammoth, semchunk, yaml",
    "parquet": "import polars",
    "publish": "import semsearch.publishing.bucket, semsearch.publishing.s3vectors",
    "cluster": "import ray.data, semsearch.indexing.cluster",
    "plot": "import matplotlib.pyplot",
    "export": "import semsearch.conversion.convert, semsearch.conversion.reranker",
    "mkdocs": "import semsearch.site.mkdocs_plugin",
    "sphinx": "import semsearch.sphinx",
    "langchain": "import semsearch.retrievers.langchain",
    "llama-index": "import semsearch.retrievers.llama_index",
    "haystack": "import semsearch.retrievers.haystack",
}
AT_ONCE = 2  # environments that are made at the same time
TORCH = "torch==2.13.0"
CPU_BUILD = f"{TORCH}+cpu"  # found where pip was told of a place that has CPU builds


def main(extras: list[str]) -> None:
    """Try each extra, by default all of pyproject.toml that users install, and print its seconds."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        stated = set(tomllib.load(file)["project"]["optional-dependencies"]) - {"bench", "dev"}
    assert stated == set(USES), f"without a use here, or not in pyproject.toml: {stated ^ set(USES)}"
    (wheel,) = (ROOT / "dist").glob("semsearch-*.whl")
    (model,) = (ROOT / "dist").glob("semsearch_model-*.whl")

    def use(extra: str) -> str:
        started = time.monotonic()
        with TemporaryDirectory() as folder:
            install_and_use(extra, f"{wheel}[{extra}]", model, Path(folder))
        return f"{extra}: {time.monotonic() - started:.0f} s"

    with ThreadPoolExecutor(AT_ONCE) as pool:  # pip waits for the network and the disk
        for line in pool.map(use, extras or USES):
            print(line, flush=True)


def install_and_use(extra: str, wheel: str, model: Path, folder: Path) -> None:
    """Install one extra in a new environment in `folder`, and run its line of USES there."""
    subprocess.run([sys.executable, "-m", "venv", folder / "environment"], check=True)
    python = folder / "environment" / "bin" / "python"
    pip: list[str | Path] = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    if extra == "export" and subprocess.run([*pip, CPU_BUILD], stderr=subprocess.DEVNULL, check=False).returncode:
        subprocess.run([*pip, TORCH], check=True)
    subprocess.run([*pip, wheel, model], check=True)
    environment = os.environ | {"XDG_CACHE_HOME": str(folder / "cache")}  # which has no converted model
    subprocess.run([python, "-c", USES[extra]], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main(sys.argv[1:])
