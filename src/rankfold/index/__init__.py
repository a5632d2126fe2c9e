"""The index: what a user keeps."""

from rankfold.index.index import Index
from rankfold.index.query import Matches, Reason, Results

__all__ = ["Index", "Matches", "Reason", "Results"]
