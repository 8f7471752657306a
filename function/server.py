"""The same app as an ordinary server on this machine, for a look."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from function.app import create_app
from function.cold_start import ColdStart
from function.engine.bundle import BundleError
from function.engine.loading import load_bundle
from function.engine.tensors import TensorsError
from function.settings import SettingsError, read_settings
from function.stopwatch import Stopwatch
from function.telemetry import make_logger

LAST_PORT = 65535  # TCP has 16 bits for it


def main(arguments: Sequence[str] | None = None) -> int:
    """Serve until interrupted; give the exit code: 0 stopped, 1 the bundle cannot be served, 2 unusable arguments."""
    parser = argparse.ArgumentParser(
        "python -m function", description="Serve a bundle on this machine, with the app that runs in Lambda."
    )
    parser.add_argument("--bundle", type=Path, help="the bundle's folder (default: BUNDLE_DIR, or bundle/)")
    parser.add_argument("--host", default="127.0.0.1", help="default: 127.0.0.1, this machine alone")
    parser.add_argument("--port", type=_port, default=8000, help="default: 8000; 0 takes one that is free")
    options = parser.parse_args(arguments)
    try:
        import uvicorn
    except ModuleNotFoundError:
        print("error: uvicorn is not installed; run `pip install uvicorn`", file=sys.stderr)
        return 1
    try:
        settings = read_settings()
        stopwatch = Stopwatch()
        if options.bundle is not None:
            settings = replace(settings, bundle_dir=options.bundle)
        bundle = load_bundle(settings.bundle_dir)
        stopwatch.lap("load")
        logger = make_logger(settings)
        cold_start = ColdStart(stopwatch.phases, lambda phases: logger.info("start", extra={"milliseconds": phases}))
        cold_start.end()
        app = create_app(bundle, settings, logger, cold_start)
    except (BundleError, TensorsError, SettingsError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    uvicorn.run(app, host=options.host, port=options.port, lifespan="off", access_log=False)
    return 0


def _port(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 5 and int(text) <= LAST_PORT):
        raise argparse.ArgumentTypeError(
            f"{text!r}, expected a whole number from 0 to {LAST_PORT}; 0 takes a port that is free"
        )
    return int(text)
