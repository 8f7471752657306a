"""What the tests of commands start, and the documents that they write."""

import json
import subprocess
import sys
from pathlib import Path
from typing import IO, Any

SEMSEARCH = (sys.executable, "-m", "semsearch")


def write_story(path: Path, text: str) -> None:
    """Write a document whose anchor is #story."""
    path.write_text(f"# Story\n\n{text}.\n", encoding="utf-8")


class Agent:
    """A client of `semsearch mcp`."""

    def __init__(self, *words: str, errors: IO[bytes] | None = None) -> None:
        """Start it. What it and its processes print as errors and progress goes into the file `errors`."""
        command = [*SEMSEARCH, "mcp", *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors)

    def ask(self, method: str, **params: Any) -> Any:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" not in (reply := json.loads(self.process.stdout.readline())):
            pass  # a notification
        return reply.get("result", reply)

    def search(self, query: str) -> Any:
        (content,) = self.ask("tools/call", name="search", arguments={"query": query})["content"]
        return content["text"]

    def index(self) -> str:
        """Return what an answer says of the index."""
        said: str = json.loads(self.search("goose"))["index"]
        return said

    def end(self) -> int:
        self.process.communicate(timeout=60)
        return self.process.returncode
