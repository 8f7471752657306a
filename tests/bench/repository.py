"""A git repository that a test makes."""

import subprocess
from collections.abc import Mapping
from pathlib import Path


class Repository:
    """A new repository in this folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self._git("init", "--quiet")

    def _git(self, *arguments: str) -> str:
        settings = ("user.name=Someone", "user.email=someone@example.org", "commit.gpgsign=false")
        command = ["git", *(word for setting in settings for word in ("-c", setting)), *arguments]
        return subprocess.run(command, cwd=self.folder, check=True, capture_output=True, text=True).stdout.strip()

    def write(self, files: Mapping[str, str]) -> None:
        """Write files by their paths."""
        for path, text in files.items():
            (self.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (self.folder / path).write_text(text)

    def commit(self, files: Mapping[str, str]) -> str:
        """Write files, commit everything, and return the commit's short hash."""
        self.write(files)
        self._git("add", ".")
        self._git("commit", "--quiet", "-m", "A change")
        return self._git("rev-parse", "--short", "HEAD")
