"""Ranking methods, one per file, under one contract."""

from rankfold.rankers.base import Ranker
from rankfold.rankers.euclidean import Euclidean
from rankfold.rankers.ran import RAN

RANKERS: dict[str, type[Ranker]] = {"euclidean": Euclidean, "ran": RAN}

__all__ = ["RAN", "RANKERS", "Euclidean", "Ranker"]
