"""What Dask loads into every worker process that it starts for us."""

from __future__ import annotations

import signal
from typing import Any


def dask_setup(_worker: Any) -> None:
    """Leave Ctrl-C to the caller, which ends its workers; a terminal sends it to all of them."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
