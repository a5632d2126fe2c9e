"""The OpenAPI description, with every problem that an operation can answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field

PROBLEM_KIND = "application/problem+json"
REFERENCE = "#/components/schemas/"
NOT_OURS = ("HTTPValidationError", "ValidationError")
"""Schemas of the framework, for answers that are never sent."""

ALWAYS, OF_A_BODY = (421, 503), (400, 408, 413, 415)
WHY = {
    400: "The body is no JSON in UTF-8, or nested too deeply.",
    401: "The service has a key, and it was not given.",
    403: "The index is served for reading only.",
    404: "There is no index of this name.",
    408: "The body did not arrive in time.",
    413: "The body is too long.",
    415: "The body is not of the type application/json.",
    421: "The service does not answer to the host that was asked for.",
    422: "Something in the request cannot be used; `errors` name the fields.",
    503: "There is too much to do, it took too long, or a database does not answer.",
}


class FieldError(BaseModel):
    """What is wrong with a field."""

    field: str = Field(examples=["queries[3].where"])
    message: str


class Problem(BaseModel):
    """What is wrong with a request (RFC 9457)."""

    type: str
    title: str
    status: int
    detail: str
    errors: list[FieldError]
    request_id: str = Field(description="Under which the log has it.")


def describe(app: FastAPI) -> None:
    """Let an app describe itself completely."""

    def description() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app)
        return app.openapi_schema

    app.openapi = description  # type: ignore[method-assign]


def _described(app: FastAPI) -> dict[str, Any]:
    whole = get_openapi(
        title=app.title, version=app.version, description=app.description, routes=app.routes
    )
    schemas = whole["components"]["schemas"]
    for name in NOT_OURS:
        schemas.pop(name, None)
    problem = Problem.model_json_schema(ref_template=REFERENCE + "{model}")
    schemas |= problem.pop("$defs") | {Problem.__name__: problem}
    for path, operations in whole["paths"].items():
        for operation in operations.values():
            answers = operation["responses"]
            answers |= {str(status): _problem(status) for status in _statuses(path, operation)}
            operation["responses"] = dict(sorted(answers.items()))
    return whole


def _statuses(path: str, operation: dict[str, Any]) -> Iterator[int]:
    """Yield the problems that an operation can answer."""
    yield from ALWAYS
    if "requestBody" in operation:
        yield from OF_A_BODY
    if "requestBody" in operation or "parameters" in operation:
        yield 422
    if "security" in operation:
        yield 401
    if "write" in operation.get("tags", ()):
        yield 403
    if "{name}" in path:
        yield 404


def _problem(status: int) -> dict[str, Any]:
    answer: dict[str, Any] = {
        "description": WHY[status],
        "content": {PROBLEM_KIND: {"schema": {"$ref": REFERENCE + Problem.__name__}}},
    }
    headers = {401: "WWW-Authenticate", 503: "Retry-After"}
    if status in headers:
        answer["headers"] = {headers[status]: {"schema": {"type": "string"}}}
    return answer
