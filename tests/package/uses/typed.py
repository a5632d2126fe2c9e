"""What a user's file looks like to a type checker."""

from rankfold import RAN, Index, Ranking, datasets


def best(row: int) -> Ranking:
    """Return the best of the digits."""
    digits = datasets.load("digits")
    return RAN(n_neighbors=10).fit(digits.X).rank(ids=row, top=5)


def count(path: str) -> int:
    """Return the number of points of an index."""
    with Index.open(path) as index:
        return len(index)
