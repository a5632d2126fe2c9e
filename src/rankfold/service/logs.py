"""The log: one line of JSON for everything that happens, on standard error."""

from __future__ import annotations

import json
import logging
import re
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex

from sklearn.exceptions import ConvergenceWarning
from starlette.types import Scope

PLACE = "rankfold.record"
FIELDS = (
    "request_id", "trace_id", "span_id", "parent_id", "method", "route", "status", "milliseconds",
)  # fmt: skip
LOGGERS = ("rankfold", "rankfold.service", "uvicorn", "py.warnings")
TRACE_PARENT = re.compile(
    r"(?!ff)(?P<version>[0-9a-f]{2})-(?!0{32})(?P<trace>[0-9a-f]{32})-(?!0{16})(?P<span>[0-9a-f]{16})"
    r"-(?P<flags>[0-9a-f]{2})(?P<more>-.*)?"
)
"""The header ``traceparent`` of W3C Trace Context; later versions may append fields."""


@dataclass(frozen=True)
class TraceContext:
    """The place of a request in a trace that its client has begun (W3C Trace Context).

    Parameters
    ----------
    trace_id : str
    parent_id : str
        The span of the client.
    flags : str
    span_id : str
        Of this request.
    """

    trace_id: str
    parent_id: str
    flags: str
    span_id: str = field(default_factory=lambda: token_hex(8))

    @classmethod
    def of(cls, header: str) -> TraceContext | None:
        """Read the header ``traceparent``; None for one that is malformed.

        Examples
        --------
        >>> TraceContext.of("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01").parent_id
        'b7ad6b7169203331'
        >>> TraceContext.of("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01") is None
        True
        """
        found = TRACE_PARENT.fullmatch(header)
        if found is None or (found["version"] == "00" and found["more"]):
            return None
        return cls(found["trace"], found["span"], found["flags"])

    @property
    def header(self) -> str:
        """What the answer says: the same trace, and the span of this request."""
        return f"00-{self.trace_id}-{self.span_id}-{self.flags}"


@dataclass
class RequestRecord:
    """Notes about one request, for the log and the metrics."""

    request_id: str = field(default_factory=lambda: token_hex(8))
    trace: TraceContext | None = None
    reason: str = ""
    level: int = logging.INFO

    def names(self) -> dict[str, str]:
        """Return what names the request in every line of the log about it."""
        if self.trace is None:
            return {"request_id": self.request_id}
        return {
            "request_id": self.request_id,
            "trace_id": self.trace.trace_id,
            "span_id": self.trace.span_id,
            "parent_id": self.trace.parent_id,
        }


def record_of(scope: Scope) -> RequestRecord:
    """Return the notes about a request; new ones if there are none."""
    if PLACE not in scope:
        scope[PLACE] = RequestRecord()
    record: RequestRecord = scope[PLACE]
    return record


class JsonLines(logging.Formatter):
    """Writes a message and the fields that came with it as one line of JSON.

    Examples
    --------
    >>> import logging
    >>> record = logging.LogRecord("uvicorn.error", logging.INFO, "", 0, "ready", (), None)
    >>> record.created = 0.0
    >>> JsonLines().format(record)
    '{"time": "1970-01-01T00:00:00.000+00:00", "level": "info", "event": "ready"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC)
        line = {
            "time": time.isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "event": record.getMessage(),
        }
        line |= {name: getattr(record, name) for name in FIELDS if hasattr(record, name)}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


def write_logs(level: str) -> None:
    """Let the service, its server and warnings write to standard error from some level on.

    That a query has not settled is in its answer. As a warning it would be kept for good, one for
    each tolerance that clients think of.
    """
    warnings.simplefilter("ignore", ConvergenceWarning)
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.captureWarnings(True)
    for name in LOGGERS:
        logger = logging.getLogger(name)
        logger.handlers = [handler]
        logger.setLevel(level.upper())
        logger.propagate = False
