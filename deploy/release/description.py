"""The description of the distribution: README.md, with links that lead somewhere without the folder around it.

hatchling runs this when it builds the distribution: see tool.hatch.metadata.hooks in pyproject.toml.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?![a-z]+://|#)(?P<path>[^)\s]+)\)")  # relative to README.md


class Description(MetadataHookInterface):  # type: ignore[misc]  # hatchling is in no environment of ours
    """Adds the description to the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Let relative links lead to the files of the release at the address of `Source` in [project.urls].

        Without an address, a link becomes its text, and an image is left out.
        """
        source, tag = metadata.get("urls", {}).get("Source"), f"v{metadata['version']}"

        def replaced(link: re.Match[str]) -> str:
            if source is None:
                return "" if link["image"] else link["text"]
            kind = "raw" if link["image"] else "blob"
            return f"{link['image']}[{link['text']}]({source}/{kind}/{tag}/{link['path']})"

        text = LINK.sub(replaced, Path(self.root, "README.md").read_text(encoding="utf-8"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
