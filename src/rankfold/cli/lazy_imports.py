"""Modules that other packages import and seldom use: loaded when they are first used."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

SELDOM_USED = ("pandas", "scipy.stats")
"""What scikit-learn imports at its start; a query needs neither, and they take longer than it."""


class LazyFinder(MetaPathFinder):
    """Finds modules of some names as usual, but has them run when an attribute is asked for."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return how a module is loaded; None for all that others shall find."""
        if name not in SELDOM_USED:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextmanager
def lazy_imports() -> Iterator[None]:
    """Let what is seldom used wait for its first use, where it is imported inside of the block."""
    finder = LazyFinder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)
