"""The entry point in Lambda. Importing it loads everything, measures the phases, and creates `handler`.

In INIT, the time of this import, a function has a full core, whatever its memory size. So everything that can be done
once is done here. Importing FastAPI, which most functions never need, is done only where no request waits for INIT, and
with WARM_UP_ALL_ROUTES. A thread opens the bundle while the app's modules are imported, so that each goes on while the
other one waits for a file.
"""

import os
from time import perf_counter_ns

started = perf_counter_ns()

from function.archive import archive_status, use_archive  # noqa: E402  the stopwatch runs during all other imports

use_archive()

from concurrent.futures import ThreadPoolExecutor  # noqa: E402
from pathlib import Path  # noqa: E402

from function.startup import (  # noqa: E402
    STARTED_AHEAD,
    other_requests,
    warm_up,
    warm_up_after_restore,
    warm_up_body,
    warm_up_other_routes,
)
from semsearch.app.cold_start import ColdStart, no_garbage_collection  # noqa: E402
from semsearch.app.telemetry import Stopwatch, cold_start_report, make_logger  # noqa: E402

stopwatch = Stopwatch(started)

background = ThreadPoolExecutor(1)
with no_garbage_collection():
    from semsearch.app.settings import read_settings
    from semsearch.engine.bundle import MODEL

    settings = read_settings()
    if (settings.bundle_dir / MODEL).is_file():  # a bundle without a model needs no tokenizer
        # In this order: with tokenizers first, a start takes 2 % longer. With tokenizers after the engine, it takes
        # 1.7 MB more memory.
        import numpy  # noqa: F401
        import tokenizers.models  # noqa: F401

    from semsearch.engine.loading import load

    stopwatch.lap("import-engine")
    reloader = None
    if settings.bundle_url:
        from semsearch.app.reloading.s3 import BundleReloader

        reloader = BundleReloader(settings, os.environ, by_requests=True)
        fetching = background.submit(reloader.fetch)
        opening = background.submit(reloader.load)
    else:
        opening = background.submit(load, settings.bundle_dir)

    from function.events import make_handler
    from semsearch.app.app import create_app

    logger = make_logger(settings)
    cold_start = ColdStart(cold_start_report(settings, logger, archive_status()), archive_status())
    stopwatch.lap("import-http")

    if reloader is not None:
        fetching.result()
        stopwatch.lap("fetch")
    bundle = opening.result()
    background.shutdown()
    stopwatch.lap("model")  # the rest of the time to open it

    image = Path(__file__).parents[1] / "image.json"  # written by function/image/describe.py
    app = create_app(bundle, settings, logger, cold_start, reloader=reloader, image=image)
    body = warm_up_body(bundle)
    others = other_requests(bundle)
    del bundle, opening  # otherwise they would keep a bundle that the reloader has replaced
    handler = make_handler(app, settings.api_base_path, is_closed=settings.is_closed)
    stopwatch.lap("app")

    warm_up(handler, body, is_closed=settings.is_closed)
    stopwatch.lap("warm-up")

    if settings.warm_up_all_routes or settings.aws_lambda_initialization_type in STARTED_AHEAD:
        warm_up_other_routes(handler, logger, others)
        stopwatch.lap("other-routes")

    if settings.aws_lambda_initialization_type == "snap-start":

        def refresh() -> None:
            """Read again what can have changed since the snapshot, possibly weeks ago."""
            if app.stored_keys is not None:
                app.stored_keys.read()
            if reloader is not None:
                reloader.make_poll_due()

        warm_up_after_restore(handler, cold_start, refresh, body, is_closed=settings.is_closed)
    cold_start.end(stopwatch.phases)
