"""One graph for every query, learned before the first is asked."""

from rankfold.rankers.collective.rounds import CANDIDATES, Learning, Stage, learning_of
from rankfold.rankers.collective.taking import can_stay, graph_for_all, kept_by

__all__ = [
    "CANDIDATES",
    "Learning",
    "Stage",
    "can_stay",
    "graph_for_all",
    "kept_by",
    "learning_of",
]
