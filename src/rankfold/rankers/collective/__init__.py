"""One graph for every query, learned before the first is asked."""

from rankfold.rankers.collective.rounds import CANDIDATES, Learning, Stage, learning_of

__all__ = ["CANDIDATES", "Learning", "Stage", "learning_of"]
