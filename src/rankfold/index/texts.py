"""The texts of an index: what makes vectors of them, and in which column they are kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rankfold.check import about, as_list, check_as_many
from rankfold.errors import InputError
from rankfold.inputs import Embedder, as_columns
from rankfold.storage.columns import checked_payload, distinct_ids
from rankfold.types import FloatArray

TEXT = "text"
"""The column of texts that come in a list."""


class EmbedderSettings(NamedTuple):
    """What an index keeps of the embedder that makes its vectors.

    Parameters
    ----------
    name : str or None
        None for a callable, which is given again when the index is opened.
    column : str or None
        The column of the texts; None where they are not kept.
    """

    name: str | None
    column: str | None

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> EmbedderSettings | None:
        """Read them from the settings of an index; None where it has no embedder."""
        found = settings.get("embedder")
        if found is None:
            return None
        name, column = found["name"], found["column"]
        if name is not None:
            Embedder(name)  # checks the name; nothing is loaded
        if column is not None and not isinstance(column, str):
            raise InputError(f"the column of its texts is {column!r}")
        return cls(name, column)


def text_input(
    X: Any, ids: Any, payload: Any, texts: Any, embedder: Any, progress: bool
) -> tuple[Any, Any, EmbedderSettings | None]:
    """Return vectors and payload to build an index of, and what is kept of its embedder.

    `Index.build` says what is given. All that can be wrong is said before texts are embedded.
    """
    if embedder is None:
        if texts is not None:
            raise InputError(
                "texts are given, but nothing that makes vectors of them; name an embedder, such "
                "as 'wordllama', or leave texts out and give X.",
                "embedder",
            )
        if X is None:
            raise InputError("there are no vectors; give X, or texts and an embedder.", "X")
        return X, payload, None
    model = Embedder(embedder)
    if texts is None:
        if X is None:
            raise InputError("an embedder is given, but nothing to embed; give texts, or X.")
        _check_fits(model, X)
        return X, payload, EmbedderSettings(model.name, None)
    column = texts if isinstance(texts, str) else TEXT
    if X is not None and column != texts:
        raise InputError(
            "both X and a list of texts are given; leave X out to have the texts embedded, or name "
            "their column of the payload, such as texts='body'.",
            "texts",
        )
    columns = as_columns(payload, None if column == texts else len(texts))
    if column == texts and column not in columns:
        raise InputError(
            f"texts is {texts!r}, but the payload has the columns {', '.join(columns) or 'none'}; "
            "name one of them, or give a list of texts.",
            "texts",
        )
    if column != texts:
        columns = with_texts(columns, column, texts)
    values: list[Any] = columns[column]
    settings = EmbedderSettings(model.name, column)
    if X is not None:
        _check_fits(model, X)
        return X, columns, settings
    checked_payload(columns, len(values))
    if ids is not None:
        check_as_many(values, distinct_ids(ids))
    with about("texts"):
        return model(values, progress), columns, settings


def _check_fits(model: Embedder, X: Any) -> None:
    """Require that an embedder makes vectors as wide as those that are given."""
    width = model(["width"]).shape[1]
    if np.ndim(X) == 2 and np.shape(X)[1] != width:
        raise InputError(
            f"{model} makes vectors of {width} numbers, but X has {np.shape(X)[1]}; name the one "
            "that X was made by.",
            "embedder",
        )


def with_texts(columns: Mapping[str, Any], column: str, texts: Sequence[str]) -> dict[str, Any]:
    """Return payload with a column of texts, which it must not have already."""
    if column in columns:
        raise InputError(
            f"the payload has a column {column!r}, which is that of the texts; give them once.",
            "texts",
        )
    return {column: list(texts), **columns}


class TextVectors:
    """Makes vectors of the texts that an open index is given.

    Parameters
    ----------
    settings : callable
        Returns those of the index, as they are now.
    given : str or callable, optional
        The embedder that was given when the index was opened; else the one that it names.
    """

    def __init__(self, settings: Callable[[], Mapping[str, Any]], given: Any = None) -> None:
        self._settings = settings
        self._given = None if given is None else Embedder(given)
        self._named: Embedder | None = None

    @property
    def kept(self) -> EmbedderSettings | None:
        """What the index keeps of its embedder."""
        return EmbedderSettings.of(self._settings())

    def embed(self, texts: Sequence[str]) -> FloatArray:
        """Return a vector for each text."""
        model, kept = self._given, self.kept
        if model is None and kept is not None and kept.name is not None:
            if self._named is None or self._named.name != kept.name:
                self._named = Embedder(kept.name)
            model = self._named
        if model is not None:
            return model(texts)
        if kept is not None:
            raise InputError(
                "the vectors of this index were made by a function, which it cannot keep; give it "
                "again: Index.open(path, embedder=function).",
                "embedder",
            )
        raise InputError(
            "this index has no embedder that makes vectors of texts; give one when it is opened, "
            "Index.open(path, embedder='wordllama'), or built.",
            "embedder",
        )

    def of_query(self, text: Any) -> FloatArray:
        """Return a vector for each text of a query."""
        with about("text"):
            return self.embed(as_list(text))

    def of_points(self, vectors: Any, payload: Any, texts: Any, n_points: int | None) -> Any:
        """Return vectors and payload of points; texts that come without vectors are embedded.

        Vectors are None where neither they nor texts are given.
        """
        if vectors is not None and texts is None:
            return vectors, payload
        kept = self.kept
        column = None if kept is None else kept.column
        if vectors is not None:
            raise InputError(
                "both vectors and texts are given; leave vectors out to have the texts "
                f"embedded, or give the texts as a column of the payload ({column or TEXT!r}).",
                "texts",
            )
        n_points = n_points if texts is None else len(as_list(texts))
        columns: Mapping[str, Any] = as_columns(payload, n_points)
        if texts is not None and column is not None:
            columns = with_texts(columns, column, as_list(texts))
        elif texts is None and column is not None and column in columns:
            texts = columns[column]
        with about("texts"):
            return (None if texts is None else self.embed(as_list(texts))), columns


def required(vectors: Any) -> Any:
    """Require vectors, which may have been made of texts."""
    if vectors is None:
        raise InputError(
            "points need vectors; give them, or texts where the index has an embedder."
        )
    return vectors
