"""It never hurts: bars that the defaults must clear on every set."""

import numpy as np
import pytest

from rankfold import RAN, Distance, Query

SETS = [
    "digits",
    "yale",
    *(pytest.param(name, marks=pytest.mark.slow) for name in ("usps", "orl", "coil20", "umist")),
]


def precision_at_class_size(ranker, dataset):
    sizes = np.bincount(dataset.labels)[dataset.labels]
    indices, _ = ranker.fit(dataset.X).search(k=int(sizes.max()), include_query=True)
    right = dataset.labels[indices] == dataset.labels[:, None]
    return 100 * np.mean([row[:size].mean() for row, size in zip(right, sizes, strict=True)])


@pytest.mark.parametrize("name", SETS)
def test_defaults_never_hurt(load, name):
    dataset = load(name)
    found = precision_at_class_size(RAN(metric=dataset.metric), dataset)
    plain = precision_at_class_size(Distance(metric=dataset.metric), dataset)
    assert found >= plain - 0.5


@pytest.mark.parametrize("name", ["usps", pytest.param("digits", marks=pytest.mark.slow)])
def test_an_unseen_copy_answers_like_its_point(load, name):
    dataset = load(name)
    ranker = RAN().fit(dataset.X)
    ids = range(0, len(dataset.X), 4)
    points = ranker.rank_many(ids, top=20)
    copies = ranker.rank_many([Query(vectors=dataset.X[i]) for i in ids], top=20)
    first = np.mean([copy.indices[0] == i for i, copy in zip(ids, copies, strict=True)])
    shared = np.mean(
        [
            len(np.intersect1d(point.indices, copy.indices)) / 20
            for point, copy in zip(points, copies, strict=True)
        ]
    )
    assert first >= 0.9
    assert shared >= 0.9
