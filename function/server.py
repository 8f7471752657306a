"""python -m function: the app that runs in Lambda, as an ordinary server on this machine."""

import argparse
import errno
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from function.api_keys import check_listener
from function.app import create_app
from function.engine.bundle import BundleError
from function.engine.loading import load_bundle
from function.engine.tensors import TensorsError
from function.settings import SettingsError, read_settings
from function.startup import ColdStart
from function.telemetry import Stopwatch, make_logger

LAST_PORT = 65535  # TCP has 16 bits for it


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted and return the exit code.

    0: stopped, 1: the bundle cannot be served or the address cannot be listened on, 2: unusable arguments.
    """
    parser = argparse.ArgumentParser(
        "python -m function", description="Serve a bundle on this machine, with the app that runs in Lambda."
    )
    parser.add_argument("--bundle", type=Path, help="the bundle's folder (default: BUNDLE_DIR, or bundle/)")
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine alone")
    parser.add_argument("--port", type=_port, default=8000, help="default: 8000; 0 takes one that is free")
    parser.add_argument("--open", action="store_true", help="let other machines ask without an API key")
    options = parser.parse_args(arguments)
    if find_spec("uvicorn") is None:
        print("error: uvicorn is not installed; run `pip install uvicorn`", file=sys.stderr)
        return 1
    try:
        listener = bind(options.host, options.port)  # before the bundle is loaded, which may take seconds
    except OSError as error:
        print(f"error: {options.host}:{options.port}: {_reason(error)}", file=sys.stderr)
        return 1
    with listener, suppress(KeyboardInterrupt):  # Ctrl-C, while loading too; uvicorn stops in order and passes it on
        return _serve(options, listener)
    return 0


def _serve(options: argparse.Namespace, listener: socket.socket) -> int:
    import uvicorn

    try:
        settings = read_settings()
        check_listener(listener.getsockname()[0], settings, options.open)
        stopwatch = Stopwatch()
        if options.bundle is not None:
            settings = replace(settings, bundle_dir=options.bundle)
        bundle = load_bundle(settings.bundle_dir)
        stopwatch.lap("load")
        logger = make_logger(settings)
        cold_start = ColdStart(lambda phases: logger.info("start", extra={"milliseconds": phases}))
        cold_start.end(stopwatch.phases)
        app = create_app(bundle, settings, logger, cold_start)
    except (BundleError, TensorsError, SettingsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    host, port = listener.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"

    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            # only now are connections accepted, and Ctrl-C handled by uvicorn
            print(f"running on {address} (Ctrl-C stops it)", file=sys.stderr)

    Server(uvicorn.Config(app, lifespan="off", access_log=False)).run([listener])
    return 0


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the address and does not listen yet; port 0 takes one that is free.

    Raises OSError if the host is unknown, is not this machine, or the port is taken.
    """
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # a server that has just stopped may start again
        listener.bind(address)
    except OSError:
        listener.close()
        raise
    return listener


def _reason(error: OSError) -> str:
    if isinstance(error, socket.gaierror):
        return f"the host is not known ({error.strerror}); name an address of this machine with --host"
    if error.errno == errno.EADDRINUSE:
        return "another program listens there; choose another port with --port, or 0 for one that is free"
    return f"cannot be listened on ({error.strerror}); choose another address with --host and --port"


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= LAST_PORT):
        raise argparse.ArgumentTypeError(
            f"{text!r}, expected a whole number from 0 to {LAST_PORT}; 0 takes a port that is free"
        )
    return int(text)
