"""The Lambda entry point: everything is loaded once, at import and on the clock, and the app is wrapped for events.

Lambda gives INIT a full core whatever the function's memory, so all that can be done there is done there. The model
is opened in a thread while FastAPI is imported: ONNX Runtime lets go of the interpreter while it works.
"""

from function.stopwatch import Stopwatch

stopwatch = Stopwatch()

from concurrent.futures import ThreadPoolExecutor  # noqa: E402  the clock runs while the rest is imported

from function.quick_start import deferred_models, no_collection, no_pydantic_extras  # noqa: E402

with no_collection(), no_pydantic_extras(), ThreadPoolExecutor(1) as background:
    from function.engine.loading import load_bundle
    from function.settings import read_settings
    from function.telemetry import logger

    settings = read_settings()
    stopwatch.lap("import-engine")
    opening = background.submit(load_bundle, settings.bundle_dir)
    with deferred_models():
        import fastapi  # noqa: F401
    from mangum import Mangum

    from function.app import create_app

    stopwatch.lap("import-http")
    loaded = opening.result()
    stopwatch.lap("model")  # what was left to do of opening it
    app = create_app(
        loaded.embedder, loaded.index, loaded.passages, loaded.manifest, settings, logger, stopwatch.phases
    )
    handler = Mangum(app, lifespan="off")  # with it on, Mangum starts and stops the app for every event
    stopwatch.lap("app")
