"""The index: points on disk that can be queried and changed, and what belongs to it."""

from rankfold.index.index import Index
from rankfold.index.query import Matches, Reason, Results

__all__ = ["Index", "Matches", "Reason", "Results"]
