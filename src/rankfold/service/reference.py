"""``/docs``: the description of the API as one plain page, which needs nothing from elsewhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from html import escape
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

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


def reference_router() -> APIRouter:
    """Return the routes of the page."""
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
    for path, operations in description["paths"].items():
        for method, operation in operations.items():
            parts += _operation(method.upper(), path, operation)
    parts.append("<h2>Bodies</h2>")
    for name, schema in schemas.items():
        parts += _schema(name, schema)
    return "\n".join([*parts, "</body></html>", ""])


def _operation(method: str, path: str, operation: dict[str, Any]) -> Iterator[str]:
    yield f"<h2><code>{method} {escape(path)}</code></h2>"
    yield f"<p>{_text(operation.get('description', ''))}</p>"
    parameters = operation.get("parameters", [])
    if parameters:
        yield from _table(
            (one["name"], one["schema"], one.get("description", "")) for one in parameters
        )
    if "requestBody" in operation:
        yield f"<p>Takes {_type(_json_schema(operation['requestBody']))}.</p>"
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
