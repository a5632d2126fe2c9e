"""The index: what a user keeps."""

from rankfold.index.index import Index
from rankfold.index.query import Reason, Results

__all__ = ["Index", "Reason", "Results"]
