"""Web pages on other origins. Imported only where some may ask; in Lambda, the CORS rules of the API decide that."""

from collections.abc import Sequence

from fastapi import FastAPI
from starlette.middleware.cors import CORSMiddleware

METHODS = ("GET", "HEAD", "POST")
READABLE = ("retry-after", "server-timing", "www-authenticate", "x-bundle", "x-request-id")  # headers of replies


def allow_origins(app: FastAPI, origins: Sequence[str]) -> None:
    """Let web pages with one of these origins ask, or all pages with `*`. Call it after the log was added.

    Pages can then read every reply, a 500 too. The browser first asks whether the page may ask (a preflight request),
    without the page's API key. That is answered before keys are checked, and is not logged.
    """
    app.add_middleware(
        CORSMiddleware,
        allow_origins=origins,
        allow_methods=METHODS,
        allow_headers=["*"],  # clients send many of their own
        expose_headers=READABLE,
        allow_private_network=True,  # the server is often on the same network as the browser
    )
