"""The Lambda entry point: everything is loaded once, at import and on the clock, and the app is wrapped for events.

Lambda gives INIT a full core whatever the function's memory, so all that can be done there is done there. The model
is opened in a thread while FastAPI is imported: ONNX Runtime lets go of the interpreter while it works.
"""

from function.stopwatch import Stopwatch

stopwatch = Stopwatch()

from function.quick_start.archive import use_archive  # noqa: E402  the clock runs while the rest is imported

archive = use_archive()

import os  # noqa: E402
from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from function.quick_start.absent import absent_modules  # noqa: E402
from function.quick_start.collection import no_collection  # noqa: E402
from function.quick_start.dataclass_methods import dataclass_methods_by  # noqa: E402
from function.quick_start.lazy import lazy_modules  # noqa: E402
from function.quick_start.models import deferred_models, import_core_schema  # noqa: E402
from function.quick_start.numpy_types import no_numpy_types  # noqa: E402
from function.quick_start.openapi import described_later  # noqa: E402

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy starts one for each core, and nothing here needs a second
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # looked for in each package's metadata; there are none

with no_collection(), absent_modules(), ThreadPoolExecutor(1) as background:
    with lazy_modules(), no_numpy_types(), dataclass_methods_by(archive.run_snippet if archive else None):
        from function.engine.loading import load_bundle
        from function.settings import read_settings

        settings = read_settings()
        stopwatch.lap("import-engine")
        opening = background.submit(load_bundle, settings.bundle_dir)
        import_core_schema()
        with deferred_models(), described_later():
            import fastapi  # noqa: F401
        from function.app import create_app
        from function.cold_start import ColdStart
        from function.events import make_handler
        from function.quick_start.endpoints import place_endpoints
        from function.telemetry import cold_start_report, make_logger
        from function.warm_up import warm_up
    stopwatch.lap("import-http")
    bundle = opening.result()
    stopwatch.lap("model")  # what was left to do of opening it
    logger = make_logger(settings)
    cold_start = ColdStart(stopwatch.phases, cold_start_report(settings, logger))
    app = create_app(bundle, settings, logger, cold_start)
    place_endpoints(app)
    handler = make_handler(app, settings.api_base_path)
    stopwatch.lap("app")
    warm_up(handler)
    stopwatch.lap("warm-up")
    if settings.aws_lambda_initialization_type == "snap-start":
        from function.snap_start import warm_up_after_restore

        warm_up_after_restore(handler, cold_start)
    cold_start.end()
