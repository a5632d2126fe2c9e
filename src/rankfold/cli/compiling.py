"""Say why the first answer takes so long, where compiled code is made."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import click

TOLD = "Compiling what answers queries; this is done once, and can take half a minute."


@contextmanager
def telling_of_compilation(n_points: int) -> Iterator[None]:
    """Tell on stderr when numba begins to compile; fewer points need no compiled code."""
    from rankfold.solvers import DIRECT_LIMIT

    if n_points <= DIRECT_LIMIT:
        yield
        return
    from numba.core import event

    class Listener(event.Listener):
        told = False

        def on_start(self, _event: Any) -> None:
            if not self.told:
                click.echo(TOLD, err=True)
            self.told = True

        def on_end(self, _event: Any) -> None:
            """Nothing is said at the end."""

    with event.install_listener("numba:compile", Listener()):
        yield
