"""The command `semsearch serve`: the app that runs in Lambda, as a server that answers many requests at once.

granian, a server written in Rust, reads HTTP, starts the workers and replaces those that die.
"""

import errno
import multiprocessing
import os
import signal
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

# One thread for each model, because several models keep the cores busy. NumPy and tokenizers read these variables when
# they are imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from cyclopts import App, Parameter
from cyclopts.validators import Number

from semsearch.app.cold_start import no_garbage_collection
from semsearch.app.settings import DEFAULT_BUNDLE, read_settings
from semsearch.aws.s3.published import S3
from semsearch.commands.options import NONE_STATED, FolderOptions
from semsearch.commands.places import FolderIndex, PlaceError, folders_at, refuse_for_bundle
from semsearch.commands.terminal import fail, visible
from semsearch.engine.bundle import is_bundle
from semsearch.engine.cores import usable_cores
from semsearch.engine.embedder import TOKENS_PER_BATCH
from semsearch.engine.errors import OptionError
from semsearch.indexing.errors import require_packages

if TYPE_CHECKING:
    from semsearch.commands.watching import IndexProcess

LAST_PORT = 65535  # TCP has 16 bits for it
MOST_PROCESSES = 1_000
DEFAULT_QUEUE = 16_384  # tokens; one core embeds them in two seconds with all-MiniLM-L6-v2
DEFAULT_CONNECTIONS = 1_024  # open connections of one process
DEFAULT_IDLE_TIMEOUT = 75  # seconds; load balancers keep idle connections for 60, and must be the first to close them
EXAMPLES = """\
Examples:

    semsearch serve docs/ --watch
    semsearch serve docs/ notes/ --watch
    semsearch serve bundle/ --port 8080 --workers 4
    semsearch serve s3://my-bundles/docs --host 0.0.0.0 --open
"""
command: App = App(help_epilogue=EXAMPLES)

Port = Annotated[int, Parameter(env_var="PORT", validator=Number(gte=0, lte=LAST_PORT))]
Processes = Annotated[int | None, Parameter(env_var="WORKERS", validator=Number(gte=1, lte=MOST_PROCESSES))]
Threads = Annotated[int, Parameter(env_var="THREADS", validator=Number(gte=1, lte=MOST_PROCESSES))]


def from_variable(name: str, most: int) -> Parameter:
    """Return how cyclopts reads a number from 1 to `most`, which can be an environment variable too."""
    return Parameter(env_var=name, validator=Number(gte=1, lte=most))


@command.default
def serve(
    *places: str,
    watch: bool = False,
    documents: Sequence[Path] = (),
    options: FolderOptions = NONE_STATED,
    verify: bool = False,
    host: Annotated[str, Parameter(env_var="HOST")] = "127.0.0.1",
    port: Port = 8000,
    open: Annotated[bool, Parameter(negative=())] = False,
    workers: Processes = None,
    threads: Threads = 1,
    max_queued_tokens: Annotated[int, from_variable("MAX_QUEUED_TOKENS", 10**9)] = DEFAULT_QUEUE,
    tokens_per_batch: Annotated[int, from_variable("TOKENS_PER_BATCH", 10**6)] = TOKENS_PER_BATCH,
    max_connections: Annotated[int, from_variable("MAX_CONNECTIONS", 10**6)] = DEFAULT_CONNECTIONS,
    idle_timeout: Annotated[int, from_variable("IDLE_TIMEOUT", 86_400)] = DEFAULT_IDLE_TIMEOUT,
    cors_origins: Annotated[str | None, Parameter(env_var="CORS_ORIGINS")] = None,
    allowed_host: Annotated[list[str] | None, Parameter(env_var="ALLOWED_HOSTS")] = None,
) -> None:
    """Serve a search page, an API and MCP, until interrupted.

    Args:
        places: a bundle, s3://BUCKET/PREFIX, or folders of documents, whose index is kept in a cache. Without them,
            the environment variable BUNDLE_DIR, or bundle/.
        watch: update the index when files change.
        documents: with --watch and a bundle: the folder of the documents that the bundle was made of; can be repeated.
        verify: compare each file of a bundle with its SHA-256 before it is served, which reads all of it. Files from S3
            are always compared.
        host: address to listen on; the default is for this machine alone.
        port: port to listen on; 0 takes one that is free.
        open: let other machines send requests without a key.
        workers: processes, which share the memory of the index. Without it, one for each core, and one on a Mac.
        threads: threads that run the model, in each process.
        max_queued_tokens: tokens that can wait in each process; beyond, requests get 429.
        tokens_per_batch: tokens that are embedded together; 1 embeds each text alone.
        max_connections: connections of each process; those above wait until one is closed.
        idle_timeout: seconds until a connection without a request is closed; more than a load balancer before it keeps
            one.
        cors_origins: origins of web pages that are allowed to send requests, such as https://example.com, separated by
            commas, or * for all.
        allowed_host: name in the header Host of requests that is accepted besides this machine's own, such as that of a
            proxy in front. A server for other machines accepts any name, unless one is stated here.
    """
    require_packages("semsearch serve", "server")
    with ExitStack() as stack, suppress(KeyboardInterrupt):  # Ctrl-C while the bundle is loaded
        former = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
        stack.callback(signal.signal, signal.SIGTERM, former)
        from semsearch.app.access.keys import accepted_hosts, check_listener
        from semsearch.server import workers as server
        from semsearch.server.asgi import make_app

        workers = _processes(workers, can_fork=server.CAN_FORK)
        try:
            listeners = server.bind(host, port, workers)  # before the bundle, which takes time
        except OSError as error:
            raise PlaceError(f"{host}:{port}: {_reason(error)}") from error
        for listener in listeners:
            stack.enter_context(listener)
        places = places or (os.environ.get("BUNDLE_DIR") or str(DEFAULT_BUNDLE),)
        made = bundle_of(places, watch=watch, documents=documents, options=options)
        bundle, watching = stack.enter_context(made)
        updates = None if watching is None else watching.updates
        given = {"BUNDLE_DIR": bundle, "CORS_ORIGINS": cors_origins}
        if allowed_host is not None:
            given["ALLOWED_HOSTS"] = " ".join(allowed_host)
        settings = read_settings(os.environ | {name: value for name, value in given.items() if value is not None})
        address = listeners[0].getsockname()[0]
        check_listener(address, settings, open)
        settings = replace(settings, allowed_hosts=accepted_hosts(address, settings))
        with no_garbage_collection():  # later collections skip these objects too: marking them would copy their pages
            app = make_app(settings, threads, max_queued_tokens, tokens_per_batch, workers, updates, verify=verify)
        if watching is not None:
            watching.report = app.log_failed_update
        if server.CAN_FORK:
            multiprocessing.set_start_method("fork", force=True)  # the workers share the memory of the bundle
            server.Workers(app, listeners, max_connections, idle_timeout).run()
        else:
            server.OneProcess(app, listeners, max_connections, idle_timeout).run()


def _processes(asked: int | None, *, can_fork: bool) -> int:
    """Return the number of workers: as many as the user asks for, or one for each core, and one where none can fork."""
    if can_fork:
        return asked or usable_cores()
    if asked is not None and asked > 1:
        expected = "expected 1 on this system, whose libraries fail in a forked process"
        raise OptionError("workers", f"found {asked}, {expected}; use its cores with --threads {asked}")
    return 1


@contextmanager
def bundle_of(
    places: Sequence[str], *, watch: bool, documents: Sequence[Path] = (), options: FolderOptions = NONE_STATED
) -> Iterator[tuple[str, "IndexProcess | None"]]:
    """Yield the folder or the address of the bundle for places. The index of documents is made or updated first.

    Another process makes it, whose memory is free again afterwards. With watch, also yield that process, which goes on
    until the block ends, and wait for the first document of an empty folder. Raises PlaceError if a place, or the error
    of that process, says so.
    """
    # what opens a bundle that is not there says how to make it
    place, is_one, folders = places[0], len(places) == 1, [*map(Path, documents or places)]
    is_made = is_one and (is_bundle(place) or place.startswith(S3) or not Path(place).exists())
    if not is_one:
        refuse_for_bundle(folders, options)
    elif watch and (any(map(is_bundle, folders)) or not any(folder.exists() for folder in folders)):
        raise PlaceError(f"--watch: found {folders[0]}, expected the folder of the documents; name it with --documents")
    if is_made:
        options.refuse(place)
    if is_made and not watch:
        yield place, None
        return
    from semsearch.commands.watching import IndexProcess  # a bundle does not need it

    index = FolderIndex(folders_at(folders), Path(place)) if is_made else FolderIndex.kept(folders, options)
    is_empty = watch and not index.states()
    with closing(IndexProcess(index, watch=watch)) as process:
        if error := process.error_of_first():
            if not is_empty:
                raise PlaceError(error)
            fail(error)
            sys.stderr.write(f"{visible(index.title)}: waiting for the first document\n")
            process.wait_until_made()
        yield str(index.bundle), process if watch else None


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host is not known ({error.strerror}); name an address of this machine with --host"
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; choose another port with --port, or 0 for one that is free"
    return f"cannot be listened on ({error.strerror}); choose another address with --host and --port"
