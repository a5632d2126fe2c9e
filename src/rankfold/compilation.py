"""Code that numba compiles when it is first called: how, and the notice that it takes a while."""

from __future__ import annotations

import gc
import logging
from typing import Any

import numba
from numba.core import event

TOLD = "Compiling for this machine: some seconds, once for each kind of query."

LONG = "rankfold.solvers."
"""Modules whose code takes seconds to compile; all others take less."""

log = logging.getLogger("rankfold")
jit: Any = numba.njit


def compiled(**options: Any) -> Any:
    """Have a function compiled for the types that it is called with, and kept on disk.

    It releases the GIL. All options are numba's.
    """
    return jit(nogil=True, cache=True, no_cfunc_wrapper=True, **options)


def inner(**options: Any) -> Any:
    """Have a function compiled that only compiled code calls, with which it is kept."""
    return jit(nogil=True, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)


class _Compilation(event.Listener):
    """Tells of the first long compilation of a process, and lets all of them go undisturbed.

    Numba makes so many objects that the garbage collector would take a seventh of the time.
    """

    def __init__(self) -> None:
        self.told = self.collects = False
        self.depth = 0

    def on_start(self, begun: Any) -> None:
        module = _module(begun)
        if module.startswith(LONG) and not self.told:
            self.told = True
            log.warning(TOLD)
        if module.startswith("rankfold."):
            if self.depth == 0:
                self.collects = gc.isenabled()
                gc.disable()
            self.depth += 1

    def on_end(self, ended: Any) -> None:
        if _module(ended).startswith("rankfold."):
            self.depth -= 1
            if self.depth == 0 and self.collects:
                gc.enable()


def _module(happened: Any) -> str:
    """Return where the function is that is compiled."""
    return str(happened.data["dispatcher"].py_func.__module__)


register: Any = event.register
register("numba:compile", _Compilation())
