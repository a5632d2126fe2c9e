"""The tables of an index, whose names are numbers: what users call it is data, never SQL.

Lists are rewritten often, vectors never; in a table of their own they leave the vectors, and the
index for searches on these, alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rankfold.storage.columns import UNKNOWN, Column

TYPES = {
    "boolean": "boolean",
    "integer": "bigint",
    "number": "double precision",
    "text": 'text COLLATE "C"',
    UNKNOWN: 'text COLLATE "C"',
}

CHANGES_KEPT = 1000
"""Versions back to which a table can tell what has changed since."""

PAGE = 8160
"""Bytes that fit on a page of PostgreSQL."""

LARGEST_INLINE = 1000
"""Features up to which vectors stand in the rows themselves, where scans are fastest."""

MOST_INDEXED = 2000
"""Features up to which pgvector builds an HNSW index."""

MOST_FEATURES = 16_000
"""Features that a vector of pgvector may have."""

LINKS, BREADTH = 16, 64
"""Neighbours of each point in the HNSW index, and candidates looked at: as pgvector suggests."""

BYTES_OF_LINKS = 400
MOST_MEMORY = 1024
"""Megabytes for building that index, unless the server is set to give more."""

SETUP = """
SELECT pg_advisory_xact_lock(7213690218);
CREATE SEQUENCE IF NOT EXISTS rankfold_numbers AS integer;
CREATE TABLE IF NOT EXISTS rankfold_tables (
    name text COLLATE "C" PRIMARY KEY,
    number integer UNIQUE,
    version bigint NOT NULL,
    n_points bigint NOT NULL,
    n_alive bigint NOT NULL,
    columns jsonb NOT NULL,
    settings jsonb NOT NULL
)
"""
"""A name without a number was dropped; its version lives on, so that none is ever used twice."""

LEFT_OVER = """
SELECT substring(relname FROM '[0-9]+')::integer AS number FROM pg_class
WHERE relnamespace = current_schema()::regnamespace AND relkind = 'r'
AND relname ~ '^rankfold_[0-9]+_points$'
AND substring(relname FROM '[0-9]+')::integer NOT IN
    (SELECT number FROM rankfold_tables WHERE number IS NOT NULL)
"""
"""Tables that were replaced or dropped; those in the making are invisible until they are whole."""


def names_of(number: int) -> str:
    """Return the tables of an index, as a list in SQL."""
    return ", ".join(f"rankfold_{number}_{what}" for what in ("points", "lists", "changes"))


def creation(number: int, settings: dict[str, Any], columns: Sequence[Column]) -> str:
    """Return the SQL that makes the empty tables of an index."""
    n_features = settings["n_features"]
    inline = n_features <= LARGEST_INLINE
    payload = "".join(f", {column.key} {TYPES[column.kind]}" for column in columns)
    return f"""
CREATE TABLE rankfold_{number}_points (
    slot integer PRIMARY KEY, id_text text COLLATE "C", id_number bigint,
    vector vector({n_features}) NOT NULL, x double precision, y double precision{payload}
) WITH (toast_tuple_target = {min(PAGE, 4 * n_features + 2048) if inline else 2048});
ALTER TABLE rankfold_{number}_points ALTER vector SET STORAGE {"PLAIN" if inline else "EXTERNAL"};
CREATE TABLE rankfold_{number}_lists (
    slot integer PRIMARY KEY, lists bytea NOT NULL, reach double precision NOT NULL,
    sources integer[] NOT NULL
);
ALTER TABLE rankfold_{number}_lists ALTER lists SET STORAGE EXTERNAL;
CREATE TABLE rankfold_{number}_changes (version bigint PRIMARY KEY, slots integer[] NOT NULL)
"""


def ids_indexed(number: int) -> str:
    """Return the SQL that makes ids unique and found fast."""
    return f"""
CREATE UNIQUE INDEX ON rankfold_{number}_points (id_number) WHERE id_number IS NOT NULL;
CREATE UNIQUE INDEX ON rankfold_{number}_points (id_text) WHERE id_text IS NOT NULL
"""


def hnsw_indexed(number: int, n_points: int, n_features: int) -> str:
    """Return the SQL that builds the index for searches, in memory where it fits."""
    megabytes = 1 + int(n_points * (4 * n_features + BYTES_OF_LINKS) * 1.2) // 2**20
    kilobytes = 1024 * min(MOST_MEMORY, megabytes)
    return f"""
SELECT set_config('maintenance_work_mem', greatest({kilobytes}, pg_size_bytes(
    current_setting('maintenance_work_mem')) / 1024)::text, true);
CREATE INDEX rankfold_{number}_vectors ON rankfold_{number}_points USING hnsw
    (vector vector_l2_ops) WITH (m = {LINKS}, ef_construction = {BREADTH})
"""


def widening(number: int, before: Sequence[Column], after: Sequence[Column]) -> list[str]:
    """Return the SQL that lets columns hold values of other kinds."""
    statements = []
    for old, new in zip(before, after, strict=True):
        key, kind = new.key, TYPES[new.kind]
        if old.kind == UNKNOWN and kind != TYPES[UNKNOWN]:
            statements.append(f"DROP COLUMN {key}, ADD COLUMN {key} {kind}")
        elif TYPES[old.kind] != kind:
            statements.append(f"ALTER COLUMN {key} TYPE {kind}")
    return [f"ALTER TABLE rankfold_{number}_points {statement}" for statement in statements]
