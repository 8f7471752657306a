"""The Lambda entry point: everything is loaded once, at import and on the clock, and the app is wrapped for events.

Lambda gives INIT a full core whatever the function's memory, so all that can be done there is done there.
"""

from function.stopwatch import Stopwatch

stopwatch = Stopwatch()

from mangum import Mangum  # noqa: E402  the clock runs while the rest is imported

from function.app import load_app  # noqa: E402
from function.settings import read_settings  # noqa: E402
from function.telemetry import logger  # noqa: E402

stopwatch.lap("imports")

app = load_app(read_settings(), logger, stopwatch)
handler = Mangum(app, lifespan="off")  # with it on, Mangum starts and stops the app for every event
