"""python -m tests.clients.serve server|events|keys: the tests' small bundle, with a reranker, on a port that is free.

`server` is semsearch serve; `events` answers each request as Lambda does, from an event of API Gateway. `keys` does
so with the settings of a stack with ApiKeyHashes.
"""

import logging
import socket
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from semsearch.app.app import create_app
from semsearch.app.cold_start import ColdStart
from semsearch.app.settings import IN_LAMBDA, hash_key, read_settings
from semsearch.commands.main import dispatch
from semsearch.engine.loading import load_bundle
from tests.clients.conftest import KEY
from tests.rerankers import add_reranker
from tests.world import make_stories, write_bundle


def main(kind: str) -> int:
    """Serve until killed."""
    with TemporaryDirectory() as folder:
        bundle = add_reranker(write_bundle(Path(folder) / "bundle", make_stories()))
        if kind == "server":
            return dispatch(["serve", str(bundle), "--port", "0"])
        return serve_events(bundle, {"API_KEY_HASHES": f"team-a:{hash_key(KEY)}"} if kind == "keys" else {})


def serve_events(bundle: Path, environment: dict[str, str]) -> int:
    """Serve what Lambda's handler answers, with the limits of Lambda."""
    import uvicorn

    from tests.function.events.through_events import ThroughEvents

    cold_start = ColdStart(lambda phases: None)
    cold_start.end({})
    settings = read_settings({IN_LAMBDA: "tests", **environment})
    app = ThroughEvents(create_app(load_bundle(bundle), settings, logging.getLogger("tests"), cold_start))
    with socket.create_server(("127.0.0.1", 0)) as listener:  # connections wait until uvicorn accepts them
        print(f"running on http://127.0.0.1:{listener.getsockname()[1]}", file=sys.stderr, flush=True)
        uvicorn.Server(uvicorn.Config(app, lifespan="off", log_level="warning")).run([listener])
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
