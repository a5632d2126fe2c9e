"""Collections of vector databases that exist, with a graph beside them."""

from rankfold.databases.collection import Collection

__all__ = ["Collection"]
