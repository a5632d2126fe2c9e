"""A user's file, for a type checker.

The last line is wrong. If it were not seen to be, the comment there would be an error.
"""

from rankfold import RAN, Index, Ranking, datasets


def best(top: int) -> Ranking:
    """Return the best of the digits."""
    digits = datasets.load("digits")
    return RAN(n_neighbors=10).fit(digits.X).rank(170, top=top)


def count(path: str) -> int:
    """Return the number of points of an index."""
    with Index.open(path) as index:
        return len(index)


def wrong(ranker: RAN) -> Ranking:
    """Ask for a number of results that is none."""
    return ranker.rank(170, top="5")  # type: ignore[arg-type]
