"""Who has a point in their list: what a removal has to know."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from rankfold.types import IntArray

MOST_EXTRAS = 0.25
"""Links that came later are sorted in once there are so many for each that is sorted."""


class ReverseLists:
    """For every point, those that may list it.

    Links are sorted once; later ones are kept beside. None is ever deleted, so an answer may
    hold points that do not list it any more, and whoever asks has to look.

    Parameters
    ----------
    starts : array of int, shape (n_points + 1,)
    sources : array of int
        Those from ``starts[j]`` to ``starts[j + 1]`` list point j.

    Examples
    --------
    >>> import numpy as np
    >>> reverse = ReverseLists.of(np.array([[1, 2], [0, -1], [1, 0]]))
    >>> reverse.link(np.array([3]), np.array([1]))
    >>> reverse.sources(np.array([1]))
    array([0, 2, 3])
    """

    def __init__(self, starts: IntArray, sources: IntArray) -> None:
        self.starts, self.sorted = starts, sources
        self._extras: dict[int, list[int]] = {}
        self._n_extras = 0

    @classmethod
    def of(cls, indices: IntArray) -> ReverseLists:
        """Read them off the lists of all points."""
        n_points, used = len(indices), indices >= 0
        starts = np.concatenate([[0], np.cumsum(used.sum(axis=1))])
        targets = indices[used]
        links = sparse.csr_array(
            (np.ones(len(targets), dtype=np.int8), targets, starts), shape=(n_points, n_points)
        ).tocsc()
        return cls(links.indptr.astype(np.int64), links.indices.astype(np.int32))

    @property
    def overgrown(self) -> bool:
        """Whether it is time to read them off the lists again."""
        return self._n_extras > MOST_EXTRAS * len(self.sorted) + len(self.starts)

    def link(self, sources: IntArray, targets: IntArray) -> None:
        """Note that each source has its target in its list from now on."""
        for source, target in zip(sources.tolist(), targets.tolist(), strict=True):
            self._extras.setdefault(target, []).append(source)
        self._n_extras += len(sources)

    def sources(self, targets: IntArray) -> IntArray:
        """Return the points that may list any of the targets, once for each."""
        known = targets[targets < len(self.starts) - 1]
        bounds = zip(self.starts[known].tolist(), self.starts[known + 1].tolist(), strict=True)
        parts = [self.sorted[start:end] for start, end in bounds]
        extras = [self._extras[target] for target in targets.tolist() if target in self._extras]
        parts.append(np.array([source for some in extras for source in some], dtype=np.int32))
        return np.concatenate(parts, dtype=np.intp)
