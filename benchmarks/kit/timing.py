"""Times that a busy machine cannot bend: methods take turns, and ratios come from one run."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from time import perf_counter
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

TURNS = 5


def seconds(work):
    """Return how long a piece of work took, and its result."""
    start = perf_counter()
    result = work()
    return perf_counter() - start, result


@dataclass
class Timed:
    """Seconds and answers of one method, by query."""

    seconds: list[float] = field(default_factory=list)
    answers: dict[int, Any] = field(default_factory=dict)

    @property
    def median(self) -> float:
        """The median of the seconds."""
        return float(np.median(self.seconds))


def take_turns(
    methods: dict[str, Callable[[int], Any]],
    queries: Sequence[int],
    most_seconds: float = inf,
    warm: bool = True,
) -> dict[str, Timed]:
    """Let every method answer some queries, then the next some, and so on.

    A method that has spent ``most_seconds`` is asked no more; at least one query it answers.
    A first query that does not count is for what a method does only once.
    Vectors of this length are added up by one thread: on a busy machine several wait for each
    other, which made SciPy's gradients more than twice as slow.
    """
    timed = {name: Timed() for name in methods}
    spent = dict.fromkeys(methods, 0.0)
    with threadpool_limits(1, user_api="blas"):
        for turn, block in enumerate(np.array_split(np.asarray(queries), min(TURNS, len(queries)))):
            for name, ask in methods.items():
                if turn == 0 and warm:
                    ask(int(queries[-1]))
                for query in block.tolist():
                    if timed[name].seconds and spent[name] > most_seconds:
                        break
                    took, answer = seconds(lambda ask=ask, query=query: ask(query))
                    timed[name].seconds.append(took)
                    timed[name].answers[query] = answer
                    spent[name] += took
    return timed


def overlap(found, true):
    """Return the share of the true points that were found."""
    return len(np.intersect1d(found, true)) / len(true)


def best(scores, query, top):
    """Return the ``top`` points of the highest scores, the query left out."""
    scores = np.asarray(scores, dtype=np.float64).copy()
    scores[query] = -inf
    return np.argpartition(-scores, top)[:top]
