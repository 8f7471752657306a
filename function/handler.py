"""The Lambda entry point: everything is loaded once, at import and on the clock, and the app is wrapped for events.

Lambda gives INIT a full core whatever the function's memory, so all that can be done there is done there. The model
is opened in a thread while FastAPI is imported, because ONNX Runtime releases the interpreter while it works.
"""

from time import perf_counter_ns

started = perf_counter_ns()

from function.archive import use_archive  # noqa: E402  the clock runs while the rest is imported

use_archive()

from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from function.startup import ColdStart, no_garbage_collection, warm_up, warm_up_after_restore  # noqa: E402
from function.telemetry import Stopwatch, cold_start_report, make_logger  # noqa: E402

stopwatch = Stopwatch(started)

with no_garbage_collection(), ThreadPoolExecutor(1) as background:
    from function.engine.loading import load
    from function.settings import read_settings

    settings = read_settings()
    stopwatch.lap("import-engine")
    switch = None
    if settings.bundle_url:
        from function.s3.wiring import make_reloader

        switch = make_reloader(settings, by_requests=True)
        fetching = background.submit(switch.fetch)
        opening = background.submit(switch.load)
    else:
        opening = background.submit(load, settings.bundle_dir)

    from function.app import create_app
    from function.events import make_handler

    logger = make_logger(settings)
    cold_start = ColdStart(cold_start_report(settings, logger))
    stopwatch.lap("import-http")

    if switch is not None:
        fetching.result()
        stopwatch.lap("fetch")
    bundle = opening.result()
    stopwatch.lap("model")  # what was left to do of opening it

    app = create_app(bundle, settings, logger, cold_start, switch=switch)
    del bundle, opening  # another bundle may take its place
    handler = make_handler(app, settings.api_base_path)
    stopwatch.lap("app")

    warm_up(handler, settings.api_keys)
    stopwatch.lap("warm-up")

    if settings.aws_lambda_initialization_type == "snap-start":
        restored = (lambda: None) if switch is None else switch.poll_at_next_request
        warm_up_after_restore(handler, cold_start, settings.api_keys, restored)
    cold_start.end(stopwatch.phases)
