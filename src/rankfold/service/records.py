"""What is noted about a request while it is answered."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from secrets import token_hex

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
    record: Record = scope.setdefault(PLACE, Record())
    return record
