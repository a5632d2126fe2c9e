"""The log: one line of JSON for everything that happens, on standard error."""

from __future__ import annotations

import json
import logging
import warnings
from dataclasses import dataclass, field
from datetime import UTC, datetime
from secrets import token_hex

from sklearn.exceptions import ConvergenceWarning
from starlette.types import Scope

PLACE = "rankfold.record"


@dataclass
class Record:
    """Notes about one request, for the log and the metrics."""

    request_id: str = field(default_factory=lambda: token_hex(8))
    reason: str = ""
    level: int = logging.INFO


def record_of(scope: Scope) -> Record:
    """Return the notes about a request; new ones if there are none."""
    if PLACE not in scope:
        scope[PLACE] = Record()
    record: Record = scope[PLACE]
    return record


FIELDS = ("request_id", "method", "route", "status", "milliseconds")
LOGGERS = ("rankfold", "rankfold.service", "uvicorn", "py.warnings")


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
