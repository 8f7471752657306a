"""Where each endpoint stands in the source, told to FastAPI, which would parse the source at its first request.

FastAPI wants it for its own error messages. The compiled function knows its file and line.
"""

from fastapi import FastAPI, routing
from fastapi.exceptions import EndpointContext


def place_endpoints(app: FastAPI) -> None:
    """Fill in what FastAPI's cache would get for each route of the app, file, line and name."""
    for route in app.routes:
        if isinstance(route, routing.APIRoute):
            code = route.endpoint.__code__
            # the decorator's line, as inspect.getsourcelines gives it
            place = EndpointContext(file=code.co_filename, line=code.co_firstlineno, function=route.endpoint.__name__)
            routing._endpoint_context_cache[id(route.endpoint)] = place
