"""Every error as application/problem+json, and as the OpenAPI description lists it."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.check import called_here
from rankfold.errors import (
    EmbedderError,
    InputError,
    MissingExtraError,
    StorageError,
    UnreachableError,
)
from rankfold.service.logs import record_of
from rankfold.service.requests import Parameters

MOST = 20
LONGEST_NAME = 60

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

LONGEST = 1000
"""Characters of a message; what was sent is not sent back at length."""

WORDS = {
    400: "the body cannot be read; it must be JSON in UTF-8, and not nested deeply.",
    404: "there is nothing at this address; /openapi.json lists what there is.",
    405: "this address cannot be used with this method; /openapi.json lists what there is.",
}

log = logging.getLogger("rankfold.service")


def field_errors(error: RequestValidationError) -> list[tuple[str, str]]:
    """Return fields and what is wrong with each, such as ``queries[3].where``."""
    found: dict[str, list[str]] = {}
    for one in error.errors():
        name, message = _field_and_message(one, error.body)
        if name not in found and len(found) == MOST:
            break
        messages = found.setdefault(name, [])
        if message not in messages:
            messages.append(message)
    return [(name, "; or: ".join(messages)) for name, messages in found.items()]


def _field_and_message(error: Any, body: Any) -> tuple[str, str]:
    origin, *parts = error["loc"] or ("body",)
    if error["type"] == "json_invalid":
        why = error.get("ctx", {}).get("error", "it cannot be read")
        return "body", f"this is no JSON: {why} (at character {parts[0]})"
    name = _path(parts, body, error["type"]) if origin == "body" else _joined(parts)
    if error["type"] == "extra_forbidden":
        return name, _unknown(str(parts[-1]))
    if (error["type"], name) == ("missing", "queries") and isinstance(body, dict) and body:
        return name, 'send a list, even for a single query: {"queries": [{...}]}'
    return name or str(origin), error["msg"].removeprefix("Value error, ")


def _unknown(name: str) -> str:
    if name in Parameters.model_fields:
        return f"this is a parameter of the method; write 'parameters': {{'{name}': ...}}"
    return f"there is no such field; /openapi.json has those that there are.{called_here(name)}"


def _path(parts: Sequence[str | int], sent: Any, kind: str) -> str:
    """Write the place of an error; parts that are not in the body name types, not fields."""
    kept: list[str | int] = []
    for part in parts:
        if isinstance(sent, dict) and (part in sent or kind == "missing"):
            kept.append(part)
            sent = sent.get(part)
        elif isinstance(sent, list) and isinstance(part, int) and part < len(sent):
            kept.append(part)
            sent = sent[part]
    return _joined(kept)


def _joined(parts: Sequence[str | int]) -> str:
    """Join names and numbers.

    Examples
    --------
    >>> _joined(["queries", 3, "where"])
    'queries[3].where'
    """
    written = "".join(
        f"[{part}]" if isinstance(part, int) else f".{part[:LONGEST_NAME]}" for part in parts
    )
    return written.removeprefix(".")


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


@dataclass(eq=False)
class ProblemError(Exception):
    """An answer that says what is wrong.

    Parameters
    ----------
    status : int
    detail : str
        What was given, what is expected, how to mend it.
    title : str
        The same for all problems of a kind; the words of the status by default.
    errors : sequence of (field, message)
    headers : dict
    reason : str
        One word for the metrics, where a limit is the cause.
    """

    status: int
    detail: str
    title: str = ""
    errors: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] | None = None
    reason: str = ""

    def body(self, request_id: str) -> dict[str, Any]:
        """Return what is answered."""
        return {
            "type": "about:blank",
            "title": self.title or HTTPStatus(self.status).phrase,
            "status": self.status,
            "detail": shortened(self.detail),
            "errors": [
                {"field": field, "message": shortened(message)} for field, message in self.errors
            ],
            "request_id": request_id,
        }

    def response(self, scope: Scope) -> Response:
        """Return the answer to a request, and note the reason for the metrics."""
        record = record_of(scope)
        record.reason = self.reason
        # Only ASCII, since half of a surrogate pair, if one were sent, could not be encoded.
        return Response(
            json.dumps(self.body(record.request_id)),
            self.status,
            dict(self.headers or {}),
            media_type=PROBLEM_KIND,
        )


def shortened(text: str) -> str:
    """Return a text, or its beginning."""
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def problem_of(error: Exception) -> ProblemError | None:
    """Return what a client may know about an error; None where that is nothing."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, HTTPException):
        detail = WORDS.get(error.status_code, str(error.detail))
        return ProblemError(error.status_code, detail, headers=error.headers)
    if isinstance(error, RequestValidationError):
        errors = field_errors(error)
        first = ": ".join(part for part in errors[0] if part) if errors else "cannot be read"
        return ProblemError(422, first, errors=errors)
    if isinstance(error, InputError):
        errors = [(error.argument, str(error))] if error.argument else []
        return ProblemError(422, str(error), errors=errors)
    return None


def unexpected(error: Exception, scope: Scope) -> ProblemError:
    """Log an error that is ours, and return a problem that keeps it to ourselves."""
    if isinstance(error, UnreachableError):
        log.warning(str(error), extra=record_of(scope).names())
        return ProblemError(
            503,
            "the database of this index does not answer at the moment; try again later. If this "
            "was a change, look first whether it was made.",
            headers={"Retry-After": "5"},
            reason="database",
        )
    log.error("error", exc_info=error, extra=record_of(scope).names())
    if isinstance(error, EmbedderError | MissingExtraError):
        return ProblemError(
            503,
            "what makes vectors of texts does not work at the moment; the log says why.",
            headers={"Retry-After": "5"},
        )
    if isinstance(error, StorageError):
        return ProblemError(
            503,
            "the index cannot be used at the moment; the log says why.",
            headers={"Retry-After": "5"},
        )
    return ProblemError(
        500, "something went wrong inside; the log says what, under the request_id."
    )


async def handle(request: Request, error: Exception) -> Response:
    """Answer an error; on the event loop, since a thread for every refusal would cost more."""
    problem = problem_of(error) or unexpected(error, request.scope)
    return problem.response(request.scope)


def answer_problems(app: FastAPI) -> None:
    """Let an app answer all errors as problems."""
    for kind in (ProblemError, HTTPException, RequestValidationError, InputError):
        app.add_exception_handler(kind, handle)


class ErrorMiddleware:
    """Middleware that answers whatever error is left.

    The handler of an app for every exception stands outside of all middleware, so that its answers
    would lack their headers.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, receive, watched)
        except Exception as error:
            problem = problem_of(error) or unexpected(error, scope)
            if not started:
                await problem.response(scope)(scope, receive, send)
