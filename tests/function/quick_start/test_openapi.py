"""FastAPI imported without its models of OpenAPI documents acts as FastAPI does: its documents are the same."""

from collections.abc import Callable
from typing import Any

import pytest

APP = """
import json, sys
from function.quick_start.openapi import MODULE, described_later
{enter}
    import fastapi
    from fastapi import security
    from fastapi.security import api_key
assert not LATER or not hasattr(sys.modules[MODULE], "__file__"), "FastAPI asks something of its models while imported"
app = fastapi.FastAPI()
schemes = [
    security.OAuth2(),
    security.OAuth2(flows={{"password": {{"tokenUrl": "token"}}}}),
    security.OAuth2PasswordBearer(tokenUrl="token", scopes={{"read": "all of it"}}),
    security.OAuth2AuthorizationCodeBearer(authorizationUrl="a", tokenUrl="b"),
    security.HTTPBearer(bearerFormat="JWT"),
    security.HTTPBasic(),
    security.APIKeyHeader(name="x-key"),
    security.APIKeyQuery(name="key"),
    security.APIKeyCookie(name="key"),
    security.OpenIdConnect(openIdConnectUrl="https://example.com"),
]
for number, scheme in enumerate(schemes):
    scheme.scheme_name = str(number)
    @app.get(f"/{{number}}")
    def route(found=fastapi.Depends(scheme), a: int = fastapi.Query(0, openapi_examples={{"a": {{"value": 5}}}})): ...
print(json.dumps(app.openapi()))
"""


def test_a_document_with_every_kind_of_security_is_the_same(in_a_new_process: Callable[..., Any]) -> None:
    plain = in_a_new_process(APP.format(enter="LATER = False\nif True:"))
    later = in_a_new_process(APP.format(enter="LATER = True\nwith described_later():"))
    assert len(plain["components"]["securitySchemes"]) == 10
    assert later == plain


def test_the_models_are_found_by_who_imports_them_later(in_a_new_process: Callable[..., Any]) -> None:
    script = """
import json
from function.quick_start.openapi import described_later
with described_later():
    import fastapi
from fastapi.openapi.models import Contact, ParameterInType
print(json.dumps([Contact(name="me").model_dump(exclude_none=True), ParameterInType.query.value]))
"""
    assert in_a_new_process(script) == [{"name": "me"}, "query"]


def test_the_models_are_an_attribute_of_their_package_and_know_their_own(
    in_a_new_process: Callable[..., Any],
) -> None:
    script = """
import importlib.util, json
from function.quick_start.openapi import described_later
with described_later():
    import fastapi
from fastapi.security import oauth2
import fastapi.openapi.models
found = importlib.util.find_spec("fastapi.openapi.models").name
flows = fastapi.openapi.models.OAuthFlows()
print(json.dumps([found, isinstance(flows, oauth2.OAuthFlowsModel), isinstance(5, oauth2.OAuthFlowsModel)]))
"""
    assert in_a_new_process(script) == ["fastapi.openapi.models", True, False]


def test_what_the_models_do_not_have_is_an_attribute_error(in_a_new_process: Callable[..., Any]) -> None:
    script = """
import json
from function.quick_start.openapi import described_later
with described_later():
    import fastapi
import fastapi.openapi.models as models
try:
    models.Nothing
except AttributeError as error:
    print(json.dumps(str(error)))
"""
    assert "Nothing" in in_a_new_process(script)


@pytest.mark.parametrize("path", ["/openapi.json"])
def test_the_functions_document_is_the_same_in_a_quick_start(
    in_a_new_process: Callable[..., Any], client: Any, bundle: Any, path: str
) -> None:
    script = """
import json
from function.handler import app
print(json.dumps(app.openapi()))
"""
    assert in_a_new_process(script, BUNDLE_DIR=str(bundle)) == client.get(path).json()
