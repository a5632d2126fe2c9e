"""What pydantic finds wrong, in terms of what was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError

MOST = 20
LONGEST_NAME = 60


def field_errors(error: RequestValidationError) -> list[tuple[str, str]]:
    """Return fields and what is wrong with each, such as ``queries[3].where``."""
    found: dict[str, list[str]] = {}
    for one in error.errors():
        origin, *parts = one["loc"] or ("body",)
        if one["type"] == "json_invalid":
            message = f"this is no JSON: {one.get('ctx', {}).get('error', 'cannot be read')}"
            found.setdefault("body", []).append(f"{message} (at character {parts[0]})")
            continue
        sent = error.body if origin == "body" else None
        name = _path(parts, sent, one["type"]) if origin == "body" else _joined(parts)
        messages = found.setdefault(name or str(origin), [])
        if one["msg"] not in messages:
            messages.append(one["msg"])
    return [(name, "; or: ".join(messages)) for name, messages in found.items()][:MOST]


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
