"""A learned graph under any sequence of changes: who keeps learned neighbours, and what follows."""

import numpy as np
from effort import examples
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from index_cases import backend_of, fitted_rankers

from rankfold import RAN, Index
from rankfold.datasets.synthetic import moons, rings

LOCAL = {"solver": "region", "tol": 1e-10}
N_NEIGHBORS = 5


class Living(RuleBasedStateMachine):
    """Keeps the learned lists by id beside the index, and drops removed points from them."""

    @initialize(seed=st.integers(0, 2**32 - 1), data=st.sampled_from([rings, moons]))
    def build(self, seed, data):
        self.rng = np.random.default_rng(seed)
        X = data(seed=int(self.rng.integers(1000))).X
        self.index = Index.build(X[self.rng.permutation(len(X))[:150]], n_neighbors=N_NEIGHBORS)
        self.learn()
        self.index.query(self.index.ids[0], **LOCAL)

    @rule()
    def learn(self):
        self.learned = self.index.learn()
        ids, lists = self.index.ids, self.learned.lists
        self.expected = {
            ids[row]: [
                (ids[j], d)
                for j, d in zip(lists.indices[row], lists.sq_distances[row], strict=True)
            ]
            for row in range(len(lists.indices))
        }

    def some(self, most):
        ids = self.index.ids
        return [ids[i] for i in self.rng.permutation(len(ids))[: self.rng.integers(1, most + 1)]]

    def vectors(self, n):
        ids = self.rng.choice(self.index.ids, n).tolist() if len(self.index) else []
        near = self.index.vectors(ids) if ids else np.zeros((n, 2))
        return near + self.rng.normal(scale=0.05, size=(n, 2))

    def drop(self, ids):
        gone = set(ids)
        self.expected = {
            name: [pair for pair in row if pair[0] not in gone]
            for name, row in self.expected.items()
            if name not in gone
        }

    @rule(n=st.integers(1, 12))
    def add(self, n):
        used = max(self.index.ids, default=0)
        self.drop(self.index.add(self.vectors(n), ids=range(used + 1, used + 1 + n)))

    @precondition(lambda self: len(self.index) > 30)
    @rule(most=st.sampled_from([2, 10, 25]))
    def remove(self, most):
        gone = self.some(most)
        self.index.remove(gone)
        self.drop(gone)

    @precondition(lambda self: len(self.index) > 3)
    @rule()
    def remove_a_neighbourhood(self):
        gone = self.index.query(self.some(1), top=min(12, len(self.index) - 2)).ids
        self.index.remove(gone)
        self.drop(gone)

    @precondition(lambda self: len(self.index) > 3)
    @rule()
    def move(self):
        moved = self.some(5)
        self.index.update(moved, vectors=self.vectors(len(moved)))
        self.drop(moved)

    @rule()
    def merge(self):
        self.index.save()

    @invariant()
    def lists_are_learned_or_plain(self):
        needed = self.learned.n_neighbors + 1
        with backend_of(self.index).current() as engine:
            ids, slots = self.index.ids, np.flatnonzero(engine.alive)
            names = dict(zip(slots.tolist(), ids, strict=True))
            current, plain = engine.learned.current(engine)
            expected_plain = [n for n in ids if len(self.expected.get(n, ())) < needed]
            assert [names[slot] for slot in plain.tolist()] == expected_plain
            not_learned = len(expected_plain) if self.learned.n_rounds else 0
            assert self.index.info()["learned"]["not_learned"] == not_learned
            assert (current.indices[~engine.alive] == -1).all()
            rows = engine.rows(slots, current.width)
            for place, slot in enumerate(slots.tolist()):
                here = [(names[j], d) for j, d in pairs(current, slot)]
                if names[slot] in expected_plain:
                    unit = engine.learned.unit
                    assert [name for name, _ in here] == [names[j] for j, _ in pairs(rows, place)]
                    np.testing.assert_allclose(
                        [d for _, d in here], [d / unit for _, d in pairs(rows, place)]
                    )
                else:
                    assert here == self.expected[names[slot]]

    @invariant()
    def who_follows_answers_like_who_is_fitted_anew(self):
        if len(self.index) < 2:
            return
        with backend_of(self.index).current() as engine:
            ids, slots = np.array(self.index.ids), np.flatnonzero(engine.alive)
            n_neighbors = min(N_NEIGHBORS, max(1, len(ids) - 2))
            used = self.learned.n_rounds and self.learned.fits(n_neighbors, len(ids))
            adapt = "collective" if used else "query"
            anew = RAN(n_neighbors, adapt=adapt, **LOCAL).fit(engine)
            for name in {ids[0], ids[-1], self.rng.choice(ids)}:
                found = self.index.query(name, top=len(ids), **LOCAL)
                true = anew.rank(slots[ids == name], top=len(ids))
                assert sorted(found.ids) == sorted(set(ids.tolist()) - {name})
                scores = dict(zip(true.indices.tolist(), true.scores.tolist(), strict=True))
                named = dict(zip(ids.tolist(), slots.tolist(), strict=True))
                difference = found.scores - [scores[named[one]] for one in found.ids]
                bound = found.ranking.solution.bound + true.solution.bound
                assert np.abs(difference).max() <= bound + 1e-9

    @invariant()
    def every_point_is_reached_from_another(self):
        if len(self.index) < 20 or not self.learned.n_rounds:
            return
        with backend_of(self.index).current() as engine:
            n_neighbors = min(N_NEIGHBORS, len(self.index) - 2)
            ranker = RAN(n_neighbors, adapt="collective").fit(engine)
            for slot in np.flatnonzero(engine.alive):
                edges = ranker.edges(int(slot))
                assert (np.asarray(edges.weights) > 0).any()
                assert engine.alive[edges.points].all()

    def teardown(self):
        if hasattr(self, "index"):
            self.index.close()


def pairs(lists, row):
    """Return the entries of a list."""
    indices, distances = lists.indices[row].tolist(), lists.sq_distances[row].tolist()
    return [(j, d) for j, d in zip(indices, distances, strict=True) if j >= 0]


TestLiving = Living.TestCase
TestLiving.settings = examples(
    12,
    steps=15,
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes
)


def test_a_ranker_on_the_learned_graph_follows():
    with Index.build(rings().X, n_neighbors=N_NEIGHBORS) as index:
        assert index.learn().n_rounds
        index.query(0, **LOCAL)
        (before,) = fitted_rankers(index).values()
        index.add(rings(seed=1).X[:5])
        index.remove([7, 8])
        index.query(0, **LOCAL)
        (after,) = fitted_rankers(index).values()
        assert after is before
        assert after.adapt == "collective"
