"""A bar for downloads, on standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn


class DownloadBar:
    """What pooch asks of a bar (the manner of tqdm), drawn by rich."""

    def __init__(self, progress: Progress, description: str) -> None:
        self._progress = progress
        self._task = progress.add_task(description, total=None)

    @property
    def total(self) -> float | None:
        """Bytes to come; pooch sets 0 where the server does not say."""
        return self._progress.tasks[self._task].total

    @total.setter
    def total(self, n_bytes: float) -> None:
        self._progress.update(self._task, total=n_bytes or None)

    def update(self, n_bytes: int) -> None:
        """Count bytes that have come."""
        self._progress.update(self._task, advance=n_bytes)

    def reset(self) -> None:
        """Start to count anew."""
        self._progress.reset(self._task)

    def close(self) -> None:
        """Show the last state; ``download_bar`` takes the bar away."""
        self._progress.refresh()


@contextmanager
def download_bar(name: str) -> Iterator[DownloadBar]:
    """Show a bar while a file comes in, if standard error is a terminal."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    hidden = not console.is_terminal
    with Progress(*columns, console=console, transient=True, disable=hidden) as progress:
        yield DownloadBar(progress, f"downloading {name}")
