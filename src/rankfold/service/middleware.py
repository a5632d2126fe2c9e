"""What every request passes before a route: its guard, the key, origins, and parsing."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Collection, Coroutine, Mapping, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hmac import compare_digest
from inspect import iscoroutinefunction
from time import monotonic
from typing import Annotated, Any, TypeVar, get_type_hints

from fastapi import Depends, FastAPI, Request, Security
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from pydantic import BaseModel, ValidationError
from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rankfold.service.limits import ANY_HOST, KEY_VARIABLE, Limiter, Settings, answer_unless_gone
from rankfold.service.metrics import Recorder, ServiceMetrics
from rankfold.service.problems import ErrorMiddleware, ProblemError, answer_problems

OPEN = ("/", "/health", "/openapi.json", "/docs", "/docs/style.css")
OPEN_FOLDER = "/page/"

scheme = HTTPBearer(
    scheme_name="key",
    description=f"The key that the service was started with, in the variable {KEY_VARIABLE}.",
    auto_error=False,
)
"""For the description of routes only; `KeyGuard` has checked the key before they run."""

Given = Annotated[HTTPAuthorizationCredentials | None, Security(scheme)]

Found = TypeVar("Found")
Model = TypeVar("Model", bound=BaseModel)

LONG_BODY, BYTES_PER_BRACKET = 2**16, 64
"""Bodies above so many bytes have a bracket in so many, and are parsed in a thread of their own."""

MOMENT = 0.5
"""Seconds for a body to arrive where too many others do."""

CHANGES = ("/add", "/update", "/remove")
"""How the addresses of changes end."""


class Origins(CORSMiddleware):
    """Middleware for CORS that refuses as all of the service does, with a problem."""

    def preflight_response(self, request_headers: Headers) -> Response:
        """Answer a browser that asks what a page may do."""
        response = super().preflight_response(request_headers)
        return response if response.status_code < 400 else _Refusal()


class _Refusal(Response):
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        problem = ProblemError(
            400,
            "a page of this origin may not ask in this way; origins are allowed "
            "with --cors, for GET and POST.",
            reason="origin",
        )
        await problem.response(scope)(scope, receive, send)


class KeyGuard:
    """Middleware that requires the key, where one is set, before the body of a request is read.

    Only the page, its files, ``/health`` and the description of the API are open.

    Parameters
    ----------
    app : ASGI app
    settings : Settings
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._key = app, settings.api_key

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or raise a ProblemError."""
        if scope["type"] == "http" and self._key is not None and not _is_open(scope["path"]):
            check_key(Headers(scope=scope).get("authorization", ""), self._key)
        await self._app(scope, receive, send)


def _is_open(path: str) -> bool:
    return path in OPEN or path.startswith(OPEN_FOLDER)


def check_key(authorization: str, key: str) -> None:
    """Require the header ``Authorization: Bearer KEY``."""
    kind, _, given = authorization.partition(" ")
    # Compared whatever the kind is, in a time that does not depend on where they differ.
    same = compare_digest(given.strip().encode(), key.encode())
    if not same or kind.lower() != "bearer":
        raise ProblemError(
            401,
            "this needs the key of the service, in the header 'Authorization: Bearer KEY'.",
            headers={"WWW-Authenticate": "Bearer"},
            reason="key",
        )


async def reading_key(_: Given) -> None:
    """Say, of routes that read, that they need the key where one is set."""


async def writing_key(request: Request, _: Given) -> None:
    """Require, of routes that write, that the service has a key."""
    settings: Settings = request.app.state.settings
    if settings.api_key is None:
        raise ProblemError(
            403,
            "this service has no key, so that nothing can be changed through it; start it with "
            f"a key in the variable {KEY_VARIABLE}.",
            reason="read_only",
        )


class RequestGuard:
    """Middleware that reads the bodies of requests, within their limits, before the app runs.

    Parameters
    ----------
    app : ASGI app
    settings : Settings
    """

    def __init__(self, app: ASGIApp, settings: Settings) -> None:
        self._app, self._settings = app, settings
        self._hosts = {host.lower() for host in settings.hosts}
        self._n_held = 0
        self._arriving: dict[asyncio.Timeout, float] = {}  # since when, the oldest first
        # Otherwise the longest body could never arrive.
        self._most_held = max(settings.held_bytes, settings.body_bytes)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or raise what is wrong with it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        self._check_host(headers.get("host", ""))
        if not _has_body(headers):
            await answer_unless_gone(self._app, scope, b"", receive, send)
            return
        _check_kind(headers.get("content-type", ""))
        most = self._most_bytes(scope["path"])
        self._check_length(headers.get("content-length", "0"), most)
        body = bytearray()

        def let_go() -> None:
            self._n_held -= len(body)
            body.clear()

        async def answering(message: Message) -> None:
            let_go()  # before the client takes the answer, which may last
            await send(message)

        try:
            if await self._read(receive, body, most):
                _check_brackets(body, most)
                await answer_unless_gone(self._app, scope, bytes(body), receive, answering)
        finally:
            let_go()

    def _check_host(self, host: str) -> None:
        name = without_port(host.lower())
        if ANY_HOST not in self._hosts and name not in self._hosts:
            raise ProblemError(
                421,
                f"the request is for the host {host[:100]!r}, but this service answers to "
                f"{', '.join(sorted(self._hosts))}.",
                reason="host",
            )

    def _most_bytes(self, path: str) -> int:
        """Return how long the body of a request may be; where there is no key, nobody changes."""
        changes = self._settings.api_key is not None and path.endswith(CHANGES)
        longest = self._settings.body_bytes
        return longest if changes else min(longest, self._settings.read_bytes)

    def _check_length(self, length: str, most: int) -> None:
        if not (length.isascii() and length.isdigit()):
            raise ProblemError(400, "Content-Length must be a whole number.")
        # A number of that many digits is too large whatever it is, and slow to read.
        if len(length) > 18 or int(length) > most:
            raise _too_large(most)

    async def _read(self, receive: Receive, body: bytearray, most: int) -> bool:
        """Read a body; return whether the client is still there.

        Where too many arrive already, this one has a moment: most come with their headers, or next.
        """
        arrives = len(self._arriving) < self._settings.bodies or self._make_room()
        patience = self._settings.body_timeout if arrives else MOMENT
        try:
            async with asyncio.timeout(patience) as limit:
                self._arriving[limit] = monotonic()
                try:
                    return await self._arrived(receive, body, most)
                finally:
                    self._arriving.pop(limit, None)
        except TimeoutError:
            if not arrives:
                raise _busy() from None
            raise ProblemError(
                408,
                f"the body did not arrive within {self._settings.body_timeout:g} seconds, or "
                f"{self._settings.share:g} while others waited.",
                headers={"Connection": "close"},
                reason="slow_body",
            ) from None

    async def _arrived(self, receive: Receive, body: bytearray, most: int) -> bool:
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return False
            part = message.get("body", b"")
            body += part
            self._n_held += len(part)
            if len(body) > most:
                raise _too_large(most)
            full = self._n_held > self._most_held and len(body) > LONG_BODY
            if full and not self._make_room():
                raise _busy()
            if not message.get("more_body", False):
                return True

    def _make_room(self) -> bool:
        """Give up the body that has been arriving longest, if it has had its share of time."""
        for limit, begun in self._arriving.items():
            if monotonic() - begun < self._settings.share:
                break
            del self._arriving[limit]
            limit.reschedule(asyncio.get_running_loop().time())
            return True
        return False


def _check_brackets(body: bytearray, most: int) -> None:
    """Require of a long body no more lists and objects than a request of its length needs.

    They take far more memory than their brackets, and parsing them holds the interpreter.
    """
    if len(body) > LONG_BODY and body.count(b"[") + body.count(b"{") > most // BYTES_PER_BRACKET:
        raise ProblemError(
            413,
            f"the body has more than {most // BYTES_PER_BRACKET} lists and objects; send less "
            "at a time.",
            reason="large_body",
        )


def _too_large(most: int) -> ProblemError:
    return ProblemError(
        413,
        f"the body is longer than {most} bytes; send less at a time.",
        reason="large_body",
    )


def _busy() -> ProblemError:
    return ProblemError(
        503,
        "too many requests arrive at this moment; try again.",
        headers={"Retry-After": "1"},
        reason="busy",
    )


def without_port(host: str) -> str:
    """Return a host without its port.

    Examples
    --------
    >>> without_port("localhost:80"), without_port("[::1]:80"), without_port("[::1]")
    ('localhost', '[::1]', '[::1]')
    """
    name, colon, port = host.rpartition(":")
    return name if colon and port.isascii() and port.isdigit() else host


def _has_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _check_kind(content_type: str) -> None:
    kind = content_type.partition(";")[0].strip().lower()
    if kind != "application/json":
        raise ProblemError(
            415,
            f"the body is of the type {kind[:100]!r}, but must be application/json; say so in the "
            "header Content-Type.",
            reason="content_type",
        )


def parsed(body: bytes) -> Any:
    """Parse JSON, and let other threads take turns meanwhile.

    The parser is compiled and holds the interpreter until it calls Python, as it does here for
    every number. Strings alone, 8 MiB of them, are parsed in some 40 ms.

    Examples
    --------
    >>> parsed(b'{"vector": [1, 2.5]}')
    {'vector': [1, 2.5]}
    """
    return json.loads(body, parse_float=_as_float, parse_int=_as_int)


def _as_float(text: str) -> float:
    return float(text)


def _as_int(text: str) -> int:
    return int(text)


class ParsingRequest(Request):
    """A request whose body, where it is long, is parsed in a thread."""

    async def json(self) -> Any:
        """Return the body."""
        body = await self.body()
        return await self.worked(parsed if len(body) > LONG_BODY else json.loads, body)

    async def worked(self, work: Callable[..., Found], *given: Any) -> Found:
        """Return what is made of the body: of a long one in a thread, one at a time."""
        if len(await self.body()) <= LONG_BODY:
            return work(*given)
        thread: ThreadPoolExecutor = self.app.state.parser
        return await asyncio.get_running_loop().run_in_executor(thread, work, *given)


class ParsingRoute(APIRoute):
    """A route whose long bodies are parsed and checked in a thread.

    Where all that a route takes is the request, parts of its path, one model as its body, and what
    is made of the request alone, its arguments are put together here: the general way takes
    longer than a light query. What cannot be read goes the general way, which says why.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        general, model = super().get_route_handler(), _model_of(self)
        checks = self.dependant.dependencies
        body_name = self.dependant.body_params[0].name if model else ""

        async def parse_and_answer(request: Request) -> Response:
            asked = ParsingRequest(request.scope, request.receive)
            if model is None:
                return await general(asked)
            try:
                sent = await asked.json()
            except (ValueError, RecursionError):
                return await general(asked)
            given = _taken(self.dependant, asked)
            for one in checks:
                found = await one.call(**_taken(one, asked))  # type: ignore[misc]
                if one.name is not None:
                    given[one.name] = found
            given[body_name] = await asked.worked(checked_body, sent, model)
            answer: Response = await self.endpoint(**given)
            return answer

        return parse_and_answer


def _model_of(route: APIRoute) -> type[BaseModel] | None:
    """Return the model of the body, where all else can be told from the request alone."""
    whole, hints = route.dependant, get_type_hints(route.endpoint)
    if len(whole.body_params) != 1 or not all(map(_is_plain, (whole, *whole.dependencies))):
        return None
    # Whatever these need in turn describes the key, which `KeyGuard` has checked.
    if any(deep.call is not scheme for one in whole.dependencies for deep in one.dependencies):
        return None
    answers, model = hints.get("return"), hints[whole.body_params[0].name]
    fits = isinstance(answers, type) and issubclass(answers, Response)
    return model if fits and isinstance(model, type) and issubclass(model, BaseModel) else None


def _is_plain(dependant: Dependant) -> bool:
    """Tell whether something takes nothing but the request and texts of its path."""
    others = dependant.query_params, dependant.header_params, dependant.cookie_params
    return not any(others) and iscoroutinefunction(dependant.call)


def _taken(dependant: Dependant, request: Request) -> dict[str, Any]:
    """Return the arguments that are parts of the request."""
    taken: dict[str, Any] = {
        one.name: request.path_params[one.name] for one in dependant.path_params
    }
    if dependant.request_param_name is not None:
        taken[dependant.request_param_name] = request
    for deep in dependant.dependencies:
        if deep.name is not None and deep.call is scheme:
            taken[deep.name] = None
    return taken


def checked_body(sent: Any, model: type[Model]) -> Model:
    """Return a body as its model; a RequestValidationError where it does not fit."""
    try:
        return model.model_validate(sent)
    except ValidationError as error:
        found = [{**one, "loc": ("body", *one["loc"])} for one in error.errors(include_url=False)]
        raise RequestValidationError(found, body=sent) from None


def protect(
    app: FastAPI, settings: Settings, indexes: Mapping[str, Sized], remote: Collection[str] = ()
) -> None:
    """Put limits, keys, problems, logs and metrics around an app, and the route ``/metrics``.

    Parameters
    ----------
    app : FastAPI
        ``settings``, ``limiter``, ``limiters``, ``metrics`` and ``parser`` are then found in its
        ``state``, and routes that are added to it are `ParsingRoute`, as those of its routers
        should be.
    settings : Settings
    indexes : mapping of names to indexes
        For the metrics.
    remote : collection of str
        Names of those that wait for databases: each has a limiter of its own.
    """
    limiter = Limiter(settings)
    waiting = replace(settings, running=2 * settings.running)  # for databases, not for a core
    own = {name: Limiter(waiting) for name in remote}
    metrics = ServiceMetrics([limiter, *own.values()], indexes)
    app.state.settings, app.state.limiter, app.state.metrics = settings, limiter, metrics
    app.state.limiters = own
    app.state.parser = ThreadPoolExecutor(1, "rankfold-parser")
    app.router.route_class = ParsingRoute
    answer_problems(app)
    # The last one added is the first to see a request.
    app.add_middleware(RequestGuard, settings=settings)
    app.add_middleware(KeyGuard, settings=settings)
    app.add_middleware(ErrorMiddleware)
    if settings.origins:
        app.add_middleware(
            Origins,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID", "traceparent"],
            expose_headers=["Retry-After", "X-Request-ID", "traceparent"],
        )
    app.add_middleware(Recorder, metrics=metrics)
    _add_metrics(app, metrics)


def _add_metrics(app: FastAPI, metrics: ServiceMetrics) -> None:
    @app.get(
        "/metrics",
        tags=["service"],
        dependencies=[Depends(reading_key)],
        response_class=PlainTextResponse,
    )
    async def read_metrics() -> Response:
        """Measurements of the service, as Prometheus reads them."""
        return Response(await metrics.text(), media_type=metrics.content_type)
