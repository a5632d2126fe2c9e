"""How every error becomes application/problem+json that names the field and nothing else."""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.check import InputError, StorageError, UnreachableError
from rankfold.service.description import PROBLEM_KIND
from rankfold.service.fields import field_errors
from rankfold.service.records import record_of

LONGEST = 1000
"""Characters of a message; what was sent is not sent back at length."""

WORDS = {
    400: "the body cannot be read; it must be JSON in UTF-8, and not nested deeply.",
    404: "there is nothing at this address; /openapi.json lists what there is.",
    405: "this address cannot be used with this method; /openapi.json lists what there is.",
}

log = logging.getLogger("rankfold.service")


@dataclass(eq=False)
class Problem(Exception):  # noqa: N818, it is named after what is sent
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


def problem_of(error: Exception) -> Problem | None:
    """Return what a client may know about an error; None where that is nothing."""
    if isinstance(error, Problem):
        return error
    if isinstance(error, HTTPException):
        detail = WORDS.get(error.status_code, str(error.detail))
        return Problem(error.status_code, detail, headers=error.headers)
    if isinstance(error, RequestValidationError):
        errors = field_errors(error)
        first = ": ".join(part for part in errors[0] if part) if errors else "cannot be read"
        return Problem(422, first, errors=errors)
    if isinstance(error, InputError) and not isinstance(error, StorageError):
        errors = [(error.argument, str(error))] if error.argument else []
        return Problem(422, str(error), errors=errors)
    return None


def unexpected(error: Exception, scope: Scope) -> Problem:
    """Log an error that is ours, and return a problem that keeps it to ourselves."""
    if isinstance(error, UnreachableError):
        log.warning(str(error), extra={"request_id": record_of(scope).request_id})
        return Problem(
            503,
            "the database of this index does not answer at the moment; try again later. If this "
            "was a change, look first whether it was made.",
            headers={"Retry-After": "5"},
            reason="database",
        )
    log.error("error", exc_info=error, extra={"request_id": record_of(scope).request_id})
    if isinstance(error, StorageError):
        return Problem(
            503,
            "the index cannot be used at the moment; the log says why.",
            headers={"Retry-After": "5"},
        )
    return Problem(500, "something went wrong inside; the log says what, under the request_id.")


def handle(request: Request, error: Exception) -> Response:
    """Answer an error."""
    problem = problem_of(error) or unexpected(error, request.scope)
    return problem.response(request.scope)


def answer_problems(app: FastAPI) -> None:
    """Let an app answer all errors as problems."""
    for kind in (Problem, HTTPException, RequestValidationError, InputError):
        app.add_exception_handler(kind, handle)


class Shield:
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
