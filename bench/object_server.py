"""Published bundles behind the protocol of S3, with next to no work of the processor: files that the kernel sends.

moto's server copies a whole object for each part of it, which takes as long as what is measured. This one only reads:
objects and parts of them, without looking at signatures.
"""

import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from urllib.parse import unquote

from bench.folders import PROJECT
from bench.published import KEYS, WHERE, digest_of

RANGE = re.compile(r"bytes=(\d+)-(\d+)")


@contextmanager
def serving(bundle: Path) -> Iterator[dict[str, str]]:
    """Serve a bundle as the only one that is published, and yield an environment that leads there."""
    with TemporaryDirectory() as folder:
        place = Path(folder) / WHERE.removeprefix("s3://")
        version = digest_of(bundle)
        (place / "bundles").mkdir(parents=True)
        (place / "bundles" / version).symlink_to(bundle.absolute())
        (place / "current.json").write_text(f'{{"version": "{version}"}}')
        command = [sys.executable, "-m", "bench.object_server", folder]
        with Popen(command, cwd=PROJECT, stdout=PIPE, text=True) as process:
            try:
                assert process.stdout is not None
                port = process.stdout.readline().strip()
                yield os.environ | KEYS | {"AWS_ENDPOINT_URL_S3": f"http://127.0.0.1:{port}"}
            finally:
                process.kill()


class _Objects(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    folder = Path()

    def do_GET(self) -> None:
        """Send an object or a part of it."""
        path = self.folder / unquote(self.path).lstrip("/")
        if not path.is_file():
            self.send_error(404)
            return
        with path.open("rb") as file:
            begin, end = 0, os.fstat(file.fileno()).st_size - 1
            part = RANGE.fullmatch(self.headers.get("range", ""))
            if part:
                begin, end = int(part[1]), min(end, int(part[2]))
            self.send_response(206 if part else 200)
            self.send_header("content-length", str(end - begin + 1))
            self.send_header("etag", '"unchanged"')
            self.end_headers()
            self.wfile.flush()
            self.connection.sendfile(file, begin, end - begin + 1)

    def log_message(self, *words: object) -> None:
        """Print nothing."""


def main(folder: Path) -> None:
    """Serve a folder of buckets until this process is killed, and print the port."""
    _Objects.folder = folder
    with ThreadingHTTPServer(("127.0.0.1", 0), _Objects) as server:
        print(server.server_port, flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
