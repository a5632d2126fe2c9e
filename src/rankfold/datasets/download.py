"""Download a file into the user's cache: whole and with the right bytes, or not at all."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from rankfold.errors import MissingExtraError


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


PAUSES = (0.5, 1.0)
"""Seconds before the second and the third try at what may pass."""

TIMEOUT = (5.0, 30.0)
"""Seconds to wait for a connection, and for each piece of the answer."""

CHUNK = 2**15
"""Bytes between two steps of the bar."""

PART = ".part"
"""How the names of unfinished files end."""

ABANDONED = 24 * 3600.0
"""Seconds after which an unfinished file cannot belong to a download under way."""


class DownloadError(OSError):
    """A file could not be had; the message says why, for each of its addresses."""


def cache_folder() -> Path:
    """Return the folder for downloaded data in the user's cache; it need not exist."""
    return Path(_pooch().os_cache("rankfold")) / "datasets"


def download(name: str, urls: Sequence[str], sha256: str, cache: Path) -> Path:
    """Return the path of a file in the cache, fetching it unless it is there and intact.

    The bytes go to a temporary name of their own, are checked, and then take the place of
    the file in one step, so that neither an interruption nor a second process can leave a
    part of it.
    """
    pooch = _pooch()
    from requests.exceptions import RequestException

    path = cache / name
    failures = []
    try:
        if path.is_file() and pooch.file_hash(str(path), alg="sha256") == sha256:
            return path
        cache.mkdir(parents=True, exist_ok=True)
        _sweep(cache)
        for url in urls:
            try:
                _fetch_patiently(url, path, sha256)
                return path
            except (RequestException, DownloadError) as error:
                failures.append(f"{url} {_failure(error)}")
    except OSError as error:
        raise DownloadError(f"the cache cannot be used ({error})") from error
    raise DownloadError("; ".join(failures))


def _pooch() -> Any:
    try:
        import pooch
    except ImportError:
        raise MissingExtraError("pooch", "data") from None
    return pooch


def _sweep(cache: Path) -> None:
    """Remove what downloads have left that were killed."""
    for part in cache.glob(f".*{PART}"):
        # Another process may be sweeping too.
        with contextlib.suppress(OSError):
            if time.time() - part.stat().st_mtime > ABANDONED:
                part.unlink()


def _fetch_patiently(url: str, path: Path, sha256: str) -> None:
    from requests.exceptions import RequestException

    for pause in PAUSES:
        try:
            return _fetch(url, path, sha256)
        except RequestException as error:
            if not _may_pass(error):
                raise
        time.sleep(pause)
    return _fetch(url, path, sha256)


def _fetch(url: str, path: Path, sha256: str) -> None:
    pooch = _pooch()
    with download_bar(path.name) as bar, _unfinished(path) as part:
        fetch = pooch.HTTPDownloader(
            progressbar=bar,
            chunk_size=CHUNK,
            timeout=TIMEOUT,
            # Compressed on its way, a transfer that was cut off could not be told by its length.
            headers={"Accept-Encoding": "identity"},
        )
        fetch(url, str(part), None)
        if pooch.file_hash(str(part), alg="sha256") != sha256:
            raise DownloadError("sent other bytes than expected (their sha256 differs)")
        part.replace(path)


@contextlib.contextmanager
def _unfinished(path: Path) -> Iterator[Path]:
    """Yield a name beside the path that no other download uses, and leave nothing there."""
    handle, name = tempfile.mkstemp(PART, f".{path.name}.", path.parent)
    os.close(handle)
    try:
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


def _may_pass(error: Exception) -> bool:
    """Return whether the same request may succeed a moment later."""
    from requests import exceptions

    if isinstance(error, exceptions.HTTPError):
        return error.response is not None and error.response.status_code >= 500
    if isinstance(error, exceptions.ConnectTimeout | exceptions.SSLError):
        return False
    passing = exceptions.ConnectionError | exceptions.ChunkedEncodingError | exceptions.Timeout
    return isinstance(error, passing)


def _failure(error: Exception) -> str:
    """Say in a few words what went wrong."""
    from requests import exceptions

    if isinstance(error, DownloadError):
        return str(error)
    if isinstance(error, exceptions.HTTPError) and error.response is not None:
        return f"answered with status {error.response.status_code} ({error.response.reason})"
    if isinstance(error, exceptions.ChunkedEncodingError):
        return "broke off in the middle"
    if isinstance(error, exceptions.Timeout):
        return "did not answer in time"
    if isinstance(error, exceptions.SSLError):
        return "has no certificate that is trusted here"
    if isinstance(error, exceptions.ConnectionError):
        return "could not be reached"
    return f"failed ({error})"
