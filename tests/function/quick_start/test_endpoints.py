"""What FastAPI is told of the endpoints is what it would find out by itself."""

from collections.abc import Callable

from fastapi import FastAPI, routing

from function.quick_start.endpoints import place_endpoints


def test_each_endpoint_is_where_fastapi_would_find_it(make_app: Callable[..., FastAPI]) -> None:
    app = make_app()
    endpoints = [route.endpoint for route in app.routes if isinstance(route, routing.APIRoute)]
    assert len(endpoints) == 4
    place_endpoints(app)
    placed = [routing._endpoint_context_cache.pop(id(endpoint)) for endpoint in endpoints]
    assert placed == [routing._extract_endpoint_context(endpoint) for endpoint in endpoints]
    assert {"file", "line", "function"} == placed[0].keys()
