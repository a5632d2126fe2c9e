"""Pages from elsewhere: which may use the service."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from rankfold.service.problems import Problem


class Origins(CORSMiddleware):
    """Middleware for CORS that refuses as all of the service does, with a problem."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser that asks what a page may do."""
        response = super().preflight_response(request_headers)
        return response if response.status_code < 400 else _Refusal()


class _Refusal(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = Problem(
            400,
            "a page of this origin may not ask in this way; origins are allowed "
            "with --cors, for GET and POST.",
            reason="origin",
        )
        await problem.response(scope)(scope, receive, send)
