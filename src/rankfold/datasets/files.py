"""The files of the data sets: what they hold, how they are downloaded, how they are read."""

from __future__ import annotations

import contextlib
import os
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from scipy.io import loadmat
from scipy.io.matlab import MatReadWarning

from rankfold.errors import InputError, MissingExtraError
from rankfold.types import FloatArray, IntArray

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

FOLDER_VARIABLE = "RANKFOLD_DATA"

RAW = "https://raw.githubusercontent.com"

FACES = (
    f"{RAW}/haizhongli/L1graph/a7163b898733062e69a7fa1ef8b76c2e7423c7bb"
    "/15PKDD/DIFFUSION_PACKAGE_CVPR_2013_V1_1/Data",
    f"{RAW}/haizhongli/L1graph/71b78df1ce9b51b9ed5285e6726fa5c2297c84c3/15PKDD/MISC/Data",
)
"""Two places in one repository; the sha256 says whether what they send is the file."""

IMAGES = (
    f"{RAW}/hyzhang98/AdaGAE/6d04946060bacd41ee31eba5c124887bca44f369/data",
    f"{RAW}/hyzhang98/AdaGAE/38965140728fc081010291b20f4b28d90b3e0451/data",
)
"""Two commits of one repository."""


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
        """Start to count again."""
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


@dataclass(frozen=True)
class DataFile:
    """What a file holds, and where it may be downloaded.

    Parameters
    ----------
    sha256 : str
        Of the public file.
    points, labels : str
        The names of its two arrays.
    shape : tuple of int
        Of the points; there is one label to each row.
    urls : tuple of str
        Tried in turn; none where there is no public source.
    """

    sha256: str
    points: str
    labels: str
    shape: tuple[int, int]
    urls: tuple[str, ...] = ()

    @property
    def content(self) -> str:
        """The arrays in words."""
        rows, columns = self.shape
        return f"the arrays {self.points} ({rows} x {columns}) and {self.labels} ({rows} labels)"


def _at(folders: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(f"{folder}/{name}" for folder in folders)


FILES = {
    "yale_diff.mat": DataFile(
        "e9fc39639488eb6e645cadf9459996b502c7f2d4a03e040789e79749733f86e3",
        "Diff",
        "labels",
        (165, 165),
        _at(FACES, "YALE.mat"),
    ),
    "orl_diff.mat": DataFile(
        "277a151591cc0c889db67bff804fb2378716c7f5592c7a3a972feb7e2bd17753",
        "Diff",
        "labels",
        (400, 400),
        _at(FACES, "ORL.mat"),
    ),
    "usps_1854.mat": DataFile(
        "e0074cec2757146e7cefd6396093c1522f087beeb1ceb69b533be40193f20bb0",
        "X",
        "Y",
        (1854, 256),
        _at(IMAGES, "USPSdata_20_uni.mat"),
    ),
    "coil20.mat": DataFile(
        "b22b9beb0668f707990eda2b5f922384fd3e6d63d6df7ede3a3b5e2319c4e397",
        "X",
        "Y",
        (1440, 1024),
        _at(IMAGES, "COIL20.mat"),
    ),
    "umist.mat": DataFile(
        "247ce22f5aa04ea95e584756e9255f29b340ed43352b67a92daac724a2144b09",
        "X",
        "Y",
        (575, 1024),
        _at(IMAGES, "UMIST.mat"),
    ),
    "mnist_70k.npz": DataFile(
        "54ddfe01bb1284d50e5473a31c590ba0e723949b611ce6e7604f2e9473754d8a",
        "X",
        "y",
        (70000, 784),
    ),
}


def locate(name: str, folder: str | Path | None = None) -> Path:
    """Return where a file of the table is, downloading it if it must be.

    Parameters
    ----------
    name : str
        A key of ``FILES``.
    folder : path, optional
        The only place to look. By default the folder named by RANKFOLD_DATA, then the
        user's cache, then the public source. Only what comes from the last two must have
        the recorded sha256: what users put into a folder of theirs is theirs to choose.
    """
    file = FILES[name]
    if folder is not None:
        return _in_given_folder(name, Path(folder))
    own = os.environ.get(FOLDER_VARIABLE)
    if own and (Path(own) / name).is_file():
        return Path(own) / name
    if not file.urls:
        raise _not_found(name, own, "it has no public source to download it from")
    cache = cache_folder()
    try:
        return download(name, file.urls, file.sha256, cache)
    except DownloadError as error:
        missing = f"it is not whole in the cache {str(cache)!r}, and its download failed: {error}"
        raise _not_found(name, own, missing) from error


def _not_found(name: str, own: str | None, missing: str) -> FileNotFoundError:
    sought, remedy = f"{FOLDER_VARIABLE} names no folder", f"a folder, name it in {FOLDER_VARIABLE}"
    if own:
        sought, remedy = f"it is not in {own!r}, the folder of {FOLDER_VARIABLE}", "that folder"
    return FileNotFoundError(
        f"{name} was not found: {sought}; {missing}. Put {name} (it holds "
        f"{FILES[name].content}) into {remedy}, or pass its folder as folder=..., "
        "--folder on the command line."
    )


def _in_given_folder(name: str, folder: Path) -> Path:
    path = folder / name
    if path.is_file():
        return path
    elsewhere = f"{FOLDER_VARIABLE}, the cache and the public source"
    raise FileNotFoundError(
        f"{name} is not in {str(folder)!r}, the folder that was given, so it was sought nowhere "
        f"else. Put it there (it holds {FILES[name].content}), or give no folder, and "
        + (f"{elsewhere} are tried." if FILES[name].urls else f"{FOLDER_VARIABLE} is tried.")
    )


def read_points(path: Path, file: DataFile) -> tuple[FloatArray, IntArray]:
    """Return the points and the labels that a file holds under the names given for it."""
    try:
        content = _arrays(path, (file.points, file.labels))
        points, labels = np.asarray(content[file.points]), np.asarray(content[file.labels])
    # What a parser raises on a broken file depends on where it is broken.
    except Exception as error:
        raise _unusable(path, file, f"{type(error).__name__}: {error}") from error
    if points.dtype.kind not in "iufb" or labels.dtype.kind not in "iufb":
        raise _unusable(path, file, f"{points.dtype} and {labels.dtype} instead of numbers")
    if points.ndim != 2 or labels.size != len(points):
        raise _unusable(path, file, f"arrays of shapes {points.shape} and {labels.shape}")
    return points, labels.ravel().astype(np.intp)


def _arrays(path: Path, names: tuple[str, str]) -> Mapping[str, Any]:
    if path.suffix == ".npz":
        # NumPy leaves a file open that it fails to read, if it has opened it itself.
        with path.open("rb") as stream, np.load(stream, allow_pickle=False) as content:
            return {name: content[name] for name in names}
    with warnings.catch_warnings():
        # SciPy warns of an array that it cannot read, and returns a text in its place.
        warnings.simplefilter("error", MatReadWarning)
        return dict(loadmat(path, variable_names=names))


def _unusable(path: Path, file: DataFile, reason: str) -> InputError:
    return InputError(
        f"{str(path)!r} cannot be used ({reason}): it may be cut off or another file. "
        f"It must hold {file.content}; replace it with a whole copy, or remove it."
    )
