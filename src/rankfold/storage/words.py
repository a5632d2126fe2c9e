"""Words in the payload's text columns: SQLite's full-text search (FTS5) over the points."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from rankfold.errors import InputError
from rankfold.storage.columns import Column, Slots, check_texts, few
from rankfold.storage.database import (
    TOKENS,
    Row,
    SqliteDatabase,
    damaged,
    text_columns,
    words_table,
)
from rankfold.types import FloatArray

LONGEST_WORDS, MOST_WORDS = 2000, 100
TERM = re.compile(r'"([^"]*)"(\*?)|([^\s"*]+)(\*?)')
"""A phrase in quotes or a word; a star after it lets it be the beginning of a word."""


def make_words(database: SqliteDatabase, columns: Sequence[Column]) -> None:
    """Make the table of words again, from the points that are there; none without texts."""
    drop_words(database)
    statement = words_table(columns)
    if statement is not None:
        database.rows(statement)
        database.rows("INSERT INTO words (words) VALUES ('rebuild')")


def drop_words(database: SqliteDatabase) -> None:
    """Remove the table of words."""
    database.rows("DROP TABLE IF EXISTS words")


def add_words(database: SqliteDatabase, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Take up the words of points, each given as slot, id and payload."""
    _run(database, columns, rows, "INSERT INTO words (rowid{names}) VALUES (?{marks})")


def remove_words(database: SqliteDatabase, columns: Sequence[Column], rows: Iterable[Row]) -> None:
    """Forget the words of points, whose payload must be what was taken up."""
    delete = "INSERT INTO words (words, rowid{names}) VALUES ('delete', ?{marks})"
    _run(database, columns, rows, delete)


def _run(
    database: SqliteDatabase, columns: Sequence[Column], rows: Iterable[Row], statement: str
) -> None:
    chosen = text_columns(columns)
    if not chosen:
        return
    names, marks = "".join(f", {column.key}" for column in chosen), ", ?" * len(chosen)
    places = [0, *(2 + column.position for column in chosen)]
    database.run_many(
        statement.format(names=names, marks=marks),
        [[row[place] for place in places] for row in rows],
    )


def match_of(words: str, chosen: Sequence[Column]) -> str:
    """Return what FTS5 is asked for: any of the words, in some columns.

    Examples
    --------
    >>> match_of('chess "end game" open*', [Column("title", "text", 0)])
    '{c0} : ("chess" OR "end game" OR "open"*)'
    """
    if not isinstance(words, str):
        raise InputError(f"words is {words!r}, but must be text such as 'chess engine'.", "words")
    if len(words) > LONGEST_WORDS:
        raise InputError(
            f"words has {len(words)} characters, but may have {LONGEST_WORDS}.", "words"
        )
    check_texts([words], "words")
    terms = []
    for phrase, begins, word, starts in TERM.findall(words):
        if any(sign.isalnum() for sign in phrase or word):
            terms.append(f'"{phrase or word}"{begins or starts}')
    if not terms:
        raise InputError(
            f"words is {words!r}, which holds no word; give letters or digits.", "words"
        )
    if len(terms) > MOST_WORDS:
        raise InputError(f"there are {len(terms)} words, but may be {MOST_WORDS}.", "words")
    return f"{{{' '.join(column.key for column in chosen)}}} : ({' OR '.join(terms)})"


def searched_columns(columns: Sequence[Column], names: Sequence[str] | None) -> list[Column]:
    """Return the text columns to look in; all if none are named."""
    known = {column.name: column for column in text_columns(columns)}
    wanted = list(known) if names is None else list(names)
    unknown = [name for name in wanted if name not in known]
    if unknown or not wanted:
        raise InputError(
            f"words are looked for in text columns, of which the index has {few(known) or 'none'}"
            + (
                f"; {unknown[0]!r} is none of them." if unknown else "; give it payload with texts."
            ),
            "columns",
        )
    return [known[name] for name in wanted]


def find_words(
    database: SqliteDatabase,
    match: str,
    condition: tuple[str, Sequence[object]] | None,
    most: int,
) -> tuple[Slots, FloatArray]:
    """Return the slots of points that hold any of some words, best first, and their scores.

    Scores are those of BM25; ties go to the smaller slot. ``condition`` is SQL on points, and
    the values to bind to it.
    """
    where: str = ""
    values: Sequence[object] = ()
    if condition is not None:
        where, values = f"AND rowid IN (SELECT slot FROM points WHERE {condition[0]})", condition[1]  # noqa: S608
    rows = database.rows(
        "SELECT rowid, -bm25(words) AS score FROM words "  # noqa: S608
        f"WHERE words MATCH ? {where} ORDER BY score DESC, rowid LIMIT ?",
        [match, *values, most],
    )
    slots, scores = zip(*rows, strict=True) if rows else ((), ())
    return np.array(slots, dtype=np.int64), np.array(scores, dtype=np.float64)


def check_words(database: SqliteDatabase, columns: Sequence[Column]) -> None:
    """Require that the table of words knows the words of the points, counting them again."""
    chosen = text_columns(columns)
    if not chosen:
        return
    ((n_points,),) = database.rows("SELECT count(*) FROM points")
    ((n_known,),) = database.rows("SELECT count(*) FROM words_docsize")
    keys = ", ".join(column.key for column in chosen)
    counted = "SELECT term, doc, cnt FROM temp."
    try:
        database.rows(f"CREATE VIRTUAL TABLE temp.again USING fts5({keys}, content='', {TOKENS})")
        database.rows(f"INSERT INTO temp.again (rowid, {keys}) SELECT slot, {keys} FROM points")  # noqa: S608
        for name, table in (("known", "main, words"), ("counted", "temp, again")):
            database.rows(f"CREATE VIRTUAL TABLE temp.{name} USING fts5vocab({table}, row)")
        for one, other in (("known", "counted"), ("counted", "known")):
            different = database.rows(f"{counted}{one} EXCEPT {counted}{other} LIMIT 1")
            if different or n_known != n_points:
                raise damaged(database, "its table of words does not fit the texts of its points")
    finally:
        for name in ("known", "counted", "again"):
            database.rows(f"DROP TABLE IF EXISTS temp.{name}")
