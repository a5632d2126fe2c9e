"""What pydantic finds wrong, in terms of what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

from rankfold.service.requests import Parameters

MOST = 20
LONGEST_NAME = 60


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
    return name or str(origin), error["msg"].removeprefix("Value error, ")


def _unknown(name: str) -> str:
    if name in Parameters.model_fields:
        return f"this is a parameter of the method; write 'parameters': {{'{name}': ...}}"
    return "there is no such field; /openapi.json has those that there are"


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
