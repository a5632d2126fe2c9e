"""Texts become vectors: by a model that is called by its name, or by any callable."""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Lock
from typing import Any

import numpy as np

from rankfold.check import check_matrix
from rankfold.errors import EmbedderError, InputError, MissingExtraError, RankfoldError
from rankfold.parallel import StoppedError, check_stopped, in_order
from rankfold.types import FloatArray

BATCH, LONGEST_BATCH = 256, 2**16
"""Texts that are embedded at once, and characters, but for a single longer text."""

MODULES = "modules.json"
"""The file of a model of sentence-transformers that names its parts."""

PATIENCE = 0.1
"""Seconds between two looks whether somebody still waits for a turn."""

Embed = Callable[[list[str]], Any]
"""What turns texts into rows of an array."""

PART = r"\w[\w.-]*"


@contextmanager
def quiet_import() -> Iterator[None]:
    """Undo what a package does to the logging of the whole process when it is imported."""
    root = logging.getLogger()
    handlers, level = [*root.handlers], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _wordllama(_: str) -> Embed:
    try:
        with quiet_import():
            import wordllama
    except ImportError:
        raise MissingExtraError("wordllama", "wordllama") from None
    # The model comes inside of the package: nothing may be downloaded.
    home = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)
    return lambda texts: model.embed(texts, norm=True)


def _sentence_transformers(model: str) -> Embed:
    try:
        import sentence_transformers
    except ImportError:
        raise MissingExtraError("sentence-transformers", "sentence-transformers") from None
    name = model if "/" in model else f"sentence-transformers/{model}"
    if Path(name).exists():  # it could hold code, and an index could name it
        raise EmbedderError(
            f"the embedder is the model {name!r} of Hugging Face, but there is a folder of this "
            "name, which would be taken for it; work in another folder, or move that one."
        )
    loaded = _from_cache(name) or sentence_transformers.SentenceTransformer(name)
    return lambda texts: loaded.encode(texts, show_progress_bar=False, convert_to_numpy=True)


def _from_cache(name: str) -> Any:
    """Return a model that was downloaded before, without asking any server; else None.

    One that other libraries have downloaded in part would lack what is done after its last layer.
    """
    from huggingface_hub import try_to_load_from_cache
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging as bars

    if try_to_load_from_cache(name, MODULES, os.getenv("SENTENCE_TRANSFORMERS_HOME")) is None:
        return None
    shown = bars.is_progress_bar_enabled()
    bars.disable_progress_bar()  # of what takes a moment
    try:
        return SentenceTransformer(name, local_files_only=True)
    except (OSError, ValueError):  # files are missing
        return None
    finally:
        if shown:
            bars.enable_progress_bar()


def _openai(model: str) -> Embed:
    try:
        import openai
    except ImportError:
        raise MissingExtraError("openai", "openai") from None
    client = openai.OpenAI()

    def embed(texts: list[str]) -> Any:
        return [one.embedding for one in client.embeddings.create(model=model, input=texts).data]

    return embed


EMBEDDERS: dict[str, tuple[re.Pattern[str], Callable[[str], Embed]]] = {
    "wordllama": (re.compile(r"wordllama()"), _wordllama),
    "sentence-transformers/NAME": (
        re.compile(rf"sentence-transformers/({PART}(?:/{PART})?)"),
        _sentence_transformers,
    ),
    "openai:NAME": (re.compile(rf"openai:({PART})"), _openai),
}
"""What embedders are called, and what loads each."""


class Embedder:
    """Turns texts into vectors; a model that is called by its name is loaded when it is needed.

    Threads take turns, since few models say that they can be asked by several.

    Parameters
    ----------
    source : str or callable
        "wordllama", "sentence-transformers/NAME", "openai:NAME", or anything that takes a list of
        texts and returns as many rows of numbers.

    Examples
    --------
    >>> lengths = Embedder(lambda texts: [[len(text), 1] for text in texts])
    >>> lengths(["chess", "go"])
    array([[5., 1.],
           [2., 1.]])
    """

    def __init__(self, source: str | Embed) -> None:
        self.name = source if isinstance(source, str) else None
        self._embed = source if callable(source) else None
        self._load, self._model = self._loader(source)
        self._lock = Lock()

    @staticmethod
    def _loader(source: Any) -> tuple[Callable[[str], Embed] | None, str]:
        if callable(source):
            return None, ""
        for pattern, load in EMBEDDERS.values():
            found = pattern.fullmatch(source) if isinstance(source, str) else None
            if found is not None:
                return load, found[1]
        raise InputError(
            f"embedder is {source!r}, but must be one of {', '.join(EMBEDDERS)}, or a callable "
            "that takes a list of texts and returns an array.",
            "embedder",
        )

    def __call__(self, texts: Sequence[str], progress: bool = False) -> FloatArray:
        """Return a row for each text; ``progress`` shows a bar on stderr."""
        checked = check_embedded(texts)
        batches = list(_batches(checked))
        with self._waited(), self._failing():
            if self._embed is None and self._load is not None:
                self._embed = self._load(self._model)
            rows = list(in_order(self._rows, batches, 1, progress, "texts"))
        widths = {one.shape[1] for one in rows}
        if len(widths) > 1:
            raise InputError(
                f"{self} gave rows of {sorted(widths)} numbers; all must have as many."
            )
        return np.concatenate(rows)

    @contextmanager
    def _waited(self) -> Iterator[None]:
        """Take a turn, unless nobody waits for it any more."""
        while not self._lock.acquire(timeout=PATIENCE):
            check_stopped()
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def _failing(self) -> Iterator[None]:
        """Say of what a model raises, which may be anything, that it is the model's."""
        try:
            yield
        except (RankfoldError, StoppedError):
            raise
        except Exception as error:
            if self._load is None:  # what a user's own function raises is for its user
                raise
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise EmbedderError(f"{self} has failed: {reason}") from error

    def _rows(self, texts: list[str]) -> FloatArray:
        check_stopped()
        assert self._embed is not None  # noqa: S101
        rows = np.asarray(self._embed(texts))
        if rows.dtype == np.float16:
            rows = rows.astype(np.float32)
        found = check_matrix(rows, f"what {self} returned")
        if len(found) != len(texts):
            raise InputError(
                f"{self} returned {len(found)} rows for {len(texts)} texts; one each is needed."
            )
        return found

    def __str__(self) -> str:
        return f"the embedder {self.name!r}" if self.name else "the embedder"


def _batches(texts: list[str]) -> Iterator[list[str]]:
    """Yield texts that are embedded at once: work is stopped between two of these."""
    batch: list[str] = []
    length = 0
    for text in texts:
        if batch and (len(batch) == BATCH or length + len(text) > LONGEST_BATCH):
            yield batch
            batch, length = [], 0
        batch.append(text)
        length += len(text)
    yield batch


def check_embedded(texts: Any) -> list[str]:
    """Require texts that hold something."""
    if isinstance(texts, str) or not hasattr(texts, "__iter__"):
        raise InputError(f"texts is {texts!r:.80}, but must be a list of texts.")
    checked = list(texts)
    if not checked:
        raise InputError("texts is empty; give at least one text.")
    for place, text in enumerate(checked):
        if not isinstance(text, str) or not text.strip():
            raise InputError(
                f"text {place} is {text!r:.80}, of which no vector can be made; give words, or "
                "leave the point out."
            )
    return checked
