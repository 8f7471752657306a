"""python -m function: the app that runs in Lambda, as a server that answers many requests at once.

granian, a server written in Rust, reads HTTP, starts the workers and replaces those that die.
"""

import argparse
import errno
import multiprocessing
import os
import resource
import signal
import socket
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from importlib.util import find_spec

# One thread for each model, because several models keep the cores busy. NumPy and tokenizers read these variables when
# they are imported.
os.environ["OPENBLAS_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from semsearch.app.cold_start import no_garbage_collection
from semsearch.app.settings import SettingsError, read_settings
from semsearch.commands.options import install_command, number_option
from semsearch.commands.terminal import fail
from semsearch.engine.bundle import BundleError
from semsearch.engine.embedder import TOKENS_PER_BATCH
from semsearch.engine.tensors import TensorsError

LAST_PORT = 65535  # TCP has 16 bits for it
MOST_PROCESSES = 1_000
DEFAULT_QUEUE = 16_384  # tokens; one core embeds them in two seconds with all-MiniLM-L6-v2
DEFAULT_CONNECTIONS = 1_024  # open connections of one process
COUNTS = "PROMETHEUS_MULTIPROC_DIR"  # names the folder where workers count; prometheus_client reads it when imported
NEEDED_PACKAGES = ("granian", "uvloop", "prometheus_client")


def main(
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] = os.environ,
    prog: str = "python -m function",
) -> int:
    """Serve until interrupted and return the exit code.

    0: stopped, 1: the bundle cannot be served or the address cannot be listened on, 2: wrong arguments.
    """
    options = _parser(environment, prog).parse_args(arguments)
    if missing := [name for name in NEEDED_PACKAGES if find_spec(name) is None]:
        return fail(f"{missing[0]} is not installed, expected the extra `server`; run `{install_command('server')}`")
    with ExitStack() as stack, suppress(KeyboardInterrupt):  # Ctrl-C while the bundle is loaded
        former = signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C does
        stack.callback(signal.signal, signal.SIGTERM, former)
        os.environ[COUNTS] = stack.enter_context(tempfile.TemporaryDirectory())
        stack.callback(os.environ.pop, COUNTS, None)
        from semsearch.server.workers import bind

        try:
            listeners = bind(options.host, options.port, options.workers)  # before the bundle, which takes time
        except OSError as error:
            return fail(f"{options.host}:{options.port}: {_reason(error)}")
        for listener in listeners:
            stack.enter_context(listener)
        return _serve(options, listeners)
    return 0


def _parser(environment: Mapping[str, str], prog: str) -> argparse.ArgumentParser:
    """Return the parser of the options. Environment variables with the same names in capitals are the defaults."""
    parser = argparse.ArgumentParser(
        prog,
        description="Serve a bundle on this machine, with the app that runs in Lambda.",
        epilog="You can also set these as environment variables: HOST, PORT, WORKERS, THREADS, MAX_QUEUED_TOKENS, "
        "TOKENS_PER_BATCH, MAX_CONNECTIONS and CORS_ORIGINS.",
    )

    def add(name: str, kind: Callable[[str], object], default: object, explained: str) -> None:
        value = environment.get(name.upper().replace("-", "_")) or str(default)
        parser.add_argument(f"--{name}", type=kind, default=value, help=f"{explained} (default: {default})")

    count, queue, others = (number_option(1, most) for most in (MOST_PROCESSES, 10**9, 10**6))
    parser.add_argument("--bundle", help="the bundle's folder, or s3://BUCKET/PREFIX (default: BUNDLE_DIR, or bundle/)")
    add("host", str, "127.0.0.1", "address to listen on; the default is for this machine alone")
    add("port", number_option(0, LAST_PORT, "; 0 takes a port that is free"), 8000, "0 takes one that is free")
    parser.add_argument("--open", action="store_true", help="let other machines send requests without a key")
    cores = len(os.sched_getaffinity(0))
    add("workers", count, cores, "processes, which share the bundle's memory; by default one for each core")
    add("threads", count, 1, "threads that run the model, in each process")
    add("max-queued-tokens", queue, DEFAULT_QUEUE, "tokens that can wait in each process; beyond, requests get 429")
    add("tokens-per-batch", others, TOKENS_PER_BATCH, "tokens that are embedded together; 1 embeds each text alone")
    above = "connections of each process; those above wait until one is closed"
    add("max-connections", others, DEFAULT_CONNECTIONS, above)
    parser.add_argument(
        "--cors-origins",
        help="origins of web pages that are allowed to send requests, such as https://example.com, separated by "
        "commas, or * for all",
    )
    return parser


def _serve(options: argparse.Namespace, listeners: Sequence[socket.socket]) -> int:
    from semsearch.app.access.api_keys import check_listener
    from semsearch.server.workers import Workers, make_app

    try:
        given = {"BUNDLE_DIR": options.bundle, "CORS_ORIGINS": options.cors_origins}
        settings = read_settings(os.environ | {name: value for name, value in given.items() if value is not None})
        check_listener(listeners[0].getsockname()[0], settings, options.open)
        with no_garbage_collection():  # later collections skip these objects too: marking them would copy their pages
            app = make_app(settings, options.threads, options.max_queued_tokens, options.tokens_per_batch)
    except (BundleError, TensorsError, SettingsError) as error:
        return fail(error)
    _, most_files = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most_files, most_files))  # each connection is an open file
    multiprocessing.set_start_method("fork", force=True)  # the workers share the memory of the bundle
    Workers(app, listeners, options.max_connections).run()
    return 0


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host is not known ({error.strerror}); name an address of this machine with --host"
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; choose another port with --port, or 0 for one that is free"
    return f"cannot be listened on ({error.strerror}); choose another address with --host and --port"
