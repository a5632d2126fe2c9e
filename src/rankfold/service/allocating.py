"""How the C library gives out memory, and gives it back."""

from __future__ import annotations

import ctypes
import sys

TRIM_THRESHOLD, MMAP_THRESHOLD, ARENA_MAX = -1, -3, -8
"""Options of glibc's ``mallopt``."""

CHOSEN = {ARENA_MAX: 1, MMAP_THRESHOLD: 2**18, TRIM_THRESHOLD: 2**22}


def keep_memory_together() -> bool:
    """Let arrays that are freed leave the process, where the C library is glibc; return whether.

    By itself, glibc gives every thread a heap of its own, and comes to take arrays of up to 32 MB
    from it. Queries and changes that take turns in threads then leave holes in each of
    them, and a service grows for as long as it meets new mixtures of requests.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError):  # another C library, such as musl
        return False
    return all(mallopt(option, value) == 1 for option, value in CHOSEN.items())
