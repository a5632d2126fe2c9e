"""Warnings that point at whoever asked, not into this package."""

from __future__ import annotations

import sys
import warnings

PACKAGE = __name__.partition(".")[0]


def warn_asker(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn with the nearest line of code outside this package."""
    frame, level = sys._getframe(1), 2
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        frame = frame.f_back
        level += 1
    warnings.warn(message, category, stacklevel=level)
