"""The graph for all queries of a ranker: the one that its engine keeps, or one learned for it."""

from __future__ import annotations

from rankfold.neighbors import Engine, Learned, LivingEngine
from rankfold.rankers.collective.rounds import learning_of
from rankfold.types import Neighbors


def kept_by(engine: Engine) -> Learned | None:
    """Return the graph that an engine keeps for all queries, if there is one."""
    return engine.learned if isinstance(engine, LivingEngine) else None


def graph_for_all(
    engine: Engine, n_neighbors: int, smoothness: float, candidates: Neighbors | None
) -> Learned:
    """Take over the graph that an engine keeps for so many neighbours, or learn one.

    ``candidates`` are as in `learning_of`.
    """
    kept = kept_by(engine)
    if kept is not None and kept.fits(n_neighbors, engine.n_alive):
        return kept
    return learning_of(engine, n_neighbors, smoothness, candidates=candidates).run()


def can_stay(learned: Learned, engine: Engine, n_neighbors: int) -> bool:
    """Tell whether a graph stands for an engine that has changed, and no kept one comes first."""
    kept = kept_by(engine)
    if kept is not None and kept.fits(n_neighbors, engine.n_alive):
        return kept is learned
    return learned.fits(n_neighbors, engine.n_alive)
