"""Indexes in PostgreSQL, whose extension pgvector searches."""

from rankfold.check import MissingExtraError

try:
    import psycopg  # noqa: F401
except ImportError:
    raise MissingExtraError("psycopg", "postgresql") from None

from rankfold.databases.postgresql.database import PostgreSQL

__all__ = ["PostgreSQL"]
