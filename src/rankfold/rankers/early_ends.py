"""Warnings about queries that were not finished."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

from rankfold.rankers.asker import warn_asker


def warn_of_early_ends(
    n_queries: int, unfinished: int, unsolved: int, max_iter: int, tol: float
) -> None:
    """Say how many queries ended before they settled, and how many before they were solved."""
    if unfinished:
        warn_asker(
            f"{unfinished} of {n_queries} queries ended at max_iter={max_iter} before "
            f"their scores and objective settled to tol={tol}; raise max_iter or tol.",
            ConvergenceWarning,
        )
    if unsolved:
        warn_asker(
            f"for {unsolved} of {n_queries} queries the linear solver ended before it "
            "reached its tolerance; ranking.solution.bound says how far scores can be off. "
            "A smaller smoothness is easier to solve.",
            ConvergenceWarning,
        )
