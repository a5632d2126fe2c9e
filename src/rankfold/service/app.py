"""The service as an ASGI app, and ``/docs``, the description of its API as a page."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from html import escape
from importlib.metadata import version
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response

from rankfold.databases import Collection
from rankfold.datasets import load
from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.service import routes
from rankfold.service.handlers import Served
from rankfold.service.limits import Settings
from rankfold.service.middleware import protect
from rankfold.service.problems import describe
from rankfold.service.responses import Health
from rankfold.service.routes import page_router

EXAMPLES = {"two-moons": ("moons", "moon"), "three-rings": ("rings", "ring")}
"""Names of the examples, the data set of each, and what its labels are called."""

DESCRIPTION = """\
Rank by the shape of the data. Errors are problems (RFC 9457) that name the field. A change is on
disk when it is answered. Where a key is set, every request needs it but those for health, for this
description and for the page."""

STYLE_PATH = "/docs/style.css"

STYLE = """\
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h2 { margin-top: 2.5rem; border-top: 1px solid #8886; padding-top: 1rem; }
h2, h3, code, pre { overflow-wrap: anywhere; }
pre { background: #8882; padding: .75rem; overflow-x: auto; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; }
td, th { text-align: left; vertical-align: top; padding: .25rem .75rem .25rem 0; }
td { border-top: 1px solid #8884; }
"""

QUOTED = re.compile(r"`([^`]+)`")

SCHEMAS = "#/components/schemas/"

LIMITS = {
    "minimum": "at least {}",
    "exclusiveMinimum": "above {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "below {}",
    "minLength": "at least {} characters",
    "maxLength": "up to {} characters",
    "minItems": "at least {} items",
    "maxItems": "up to {} items",
}
"""Limits of a field in JSON Schema, and how they are said."""


def build_examples() -> dict[str, Index]:
    """Build them; they are gone when they are closed."""
    return {name: _build(*example) for name, example in EXAMPLES.items()}


def _build(dataset: str, column: str) -> Index:
    data = load(dataset)
    return Index.build(data.X, payload={column: data.labels})


def create_app(
    indexes: Mapping[str, Index | Collection], settings: Settings | None = None
) -> FastAPI:
    """Return the service over some indexes and the examples.

    Parameters
    ----------
    indexes : dict of str to Index or Collection
        By the names under which they are served. They stay open when the app ends.
    settings : Settings, optional
        Limits and keys; the defaults without.
    """
    settings = settings or Settings()
    for name in EXAMPLES:
        if name in indexes:
            raise InputError(f"{name!r} is the name of an example; serve the index under another.")
    examples = build_examples()
    writable = settings.api_key is not None
    own = [
        Served(name, index, False, writable and index.writable) for name, index in indexes.items()
    ]
    given = [Served(name, index, True, False) for name, index in examples.items()]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for index in examples.values():
            index.close()

    app = FastAPI(
        title="rankfold",
        version=version("rankfold"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.served = {served.name: served for served in (*own, *given)}
    remote = [name for name, index in indexes.items() if index.waits_for_network]
    protect(app, settings, {**indexes, **examples}, remote)
    for router in (routes.read_router, routes.write_router, page_router(), reference_router()):
        app.include_router(router)

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_model=Health, tags=["service"])
    async def health() -> dict[str, str]:
        """Tell that the service answers."""
        return {"status": "ok", "version": app.version}

    describe(app)
    return app


def reference_router() -> APIRouter:
    """Return the routes of ``/docs``."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/docs", methods=["GET", "HEAD"])
    async def docs(request: Request) -> HTMLResponse:
        return HTMLResponse(reference_page(request.app.openapi()))

    @router.api_route(STYLE_PATH, methods=["GET", "HEAD"])
    async def style() -> Response:
        return Response(STYLE, media_type="text/css; charset=utf-8")

    return router


def reference_page(description: dict[str, Any]) -> str:
    """Return an OpenAPI description as HTML: all operations, then all schemas."""
    info, schemas = description["info"], description["components"]["schemas"]
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f'<title>{escape(info["title"])}: API</title><link rel="stylesheet" href="{STYLE_PATH}">',
        f"</head><body><h1>{escape(info['title'])} {escape(info['version'])}</h1>",
        f"<p>{_text(info['description'])}</p>",
        '<p>For programs: <a href="/openapi.json">/openapi.json</a>. <a href="/">The page</a>.</p>',
    ]
    operations = [
        (method.upper(), path, operation)
        for path, known in description["paths"].items()
        for method, operation in known.items()
    ]
    parts += _contents(operations)
    for method, path, operation in operations:
        parts += _operation(method, path, operation, schemas)
    parts.append("<h2>Bodies</h2>")
    for name, schema in schemas.items():
        parts += _schema(name, schema)
    return "\n".join([*parts, "</body></html>", ""])


def _anchor(method: str, path: str) -> str:
    """Return the name of an operation within the page.

    Examples
    --------
    >>> _anchor("POST", "/v1/indexes/{name}/query")
    'post-v1-indexes-name-query'
    """
    return "-".join(re.findall(r"\w+", f"{method.lower()} {path}"))


def _contents(operations: list[tuple[str, str, dict[str, Any]]]) -> Iterator[str]:
    yield "<table>"
    for method, path, operation in operations:
        does, *_ = operation.get("description", "").split("\n\n")
        yield (
            f'<tr><td><a href="#{_anchor(method, path)}"><code>{method} {escape(path)}</code></a>'
            f"</td><td>{_text(does)}</td></tr>"
        )
    yield "</table>"


def _operation(
    method: str, path: str, operation: dict[str, Any], schemas: dict[str, Any]
) -> Iterator[str]:
    yield f'<h2 id="{_anchor(method, path)}"><code>{method} {escape(path)}</code></h2>'
    yield f"<p>{_text(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield from _table(
            (one["name"], one["schema"], one.get("description", "")) for one in parameters
        )
    if "requestBody" in operation:
        body = _json_schema(operation["requestBody"])
        examples = schemas.get(body.get("$ref", "").removeprefix(SCHEMAS), {}).get("examples", [])
        yield f"<p>Takes {_type(body)}{', such as' if examples else '.'}</p>"
        for example in examples[:1]:
            yield f"<pre>{escape(json.dumps(example))}</pre>"
    for status, answer in operation["responses"].items():
        schema = _json_schema(answer)
        kind = f": {_type(schema)}" if schema else ""
        yield f"<p>{status}{kind}. {_text(answer['description'])}</p>"


def _json_schema(body: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a body, of whatever media type; empty where none is described."""
    for content in body.get("content", {}).values():
        return dict(content.get("schema", {}))
    return {}


def _schema(name: str, schema: dict[str, Any]) -> Iterator[str]:
    yield f'<h3 id="{escape(name)}">{escape(name)}</h3>'
    yield f"<p>{_text(schema.get('description', ''))}</p>"
    for example in schema.get("examples", []):
        yield f"<pre>{escape(json.dumps(example))}</pre>"
    required = schema.get("required", [])
    fields = schema.get("properties", {})
    if fields:
        yield from _table(
            (f"{field}{' (required)' * (field in required)}", one, one.get("description", ""))
            for field, one in fields.items()
        )


def _table(rows: Iterator[tuple[str, dict[str, Any], str]]) -> Iterator[str]:
    yield "<table><tr><th>field</th><th>type</th><th>meaning</th></tr>"
    for name, schema, meaning in rows:
        default = schema.get("default")
        said = f" Default: <code>{escape(json.dumps(default))}</code>." if default else ""
        yield (
            f"<tr><td><code>{escape(name)}</code></td><td>{_type(schema)}</td>"
            f"<td>{_text(meaning)}{said}</td></tr>"
        )
    yield "</table>"


def _type(schema: dict[str, Any]) -> str:
    """Return a schema in words, as HTML."""
    if "$ref" in schema:
        name = escape(schema["$ref"].removeprefix(SCHEMAS))
        return f'<a href="#{name}">{name}</a>'
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return " or ".join(_type(one) for one in schema[several])
    if "const" in schema or "enum" in schema:
        allowed = schema.get("enum", [schema.get("const")])
        return " or ".join(f"<code>{escape(json.dumps(one))}</code>" for one in allowed)
    kind = escape(str(schema.get("type", "anything")))
    if "items" in schema:
        kind = f"list of {_type(schema['items'])}"
    elif isinstance(schema.get("additionalProperties"), dict):
        kind = f"object of {_type(schema['additionalProperties'])}"
    limits = [said.format(schema[limit]) for limit, said in LIMITS.items() if limit in schema]
    return f"{kind} ({', '.join(limits)})" if limits else kind


def _text(text: str) -> str:
    """Return text as HTML, with what stands in backticks as code.

    Examples
    --------
    >>> _text("`a < b`, or not")
    '<code>a &lt; b</code>, or not'
    """
    return QUOTED.sub(r"<code>\1</code>", escape(text))
