"""Another revision of the project, to be measured against: its files, and a bundle that its own export makes."""

import subprocess
import sys
from pathlib import Path

from bench.folders import PROJECT
from bench.provenance import git
from bench.report import console


def check_out(work: Path, revision: str) -> Path:
    """Return a folder in `work` with the files of a revision. Raises SystemExit if there is no such revision."""
    commit = git(PROJECT, "rev-parse", "--short", "--verify", "--quiet", f"{revision}^{{commit}}")
    if commit is None:
        raise SystemExit(f"--against: found {revision!r}, expected a commit, branch or tag of this checkout")
    folder = work / f"revision-{commit}"
    if not folder.exists():
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", commit], cwd=PROJECT, check=True, capture_output=True)
        subprocess.run(["tar", "-x"], cwd=folder, input=archive.stdout, check=True)
    return folder


def export_there(project: Path, corpus: Path) -> Path:
    """Return the bundle of a corpus that the export in this folder made, now or before."""
    bundle = project / "build" / corpus.stem
    if not (bundle / "manifest.json").exists():
        console.print(f"exporting {corpus.name} with {project.name} ...")
        command = [sys.executable, "-m", "export", "--corpus", str(corpus), "--out", str(bundle)]
        subprocess.run(command, cwd=project, check=True)
    return bundle
