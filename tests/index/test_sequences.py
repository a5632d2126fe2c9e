"""After any sequence of changes an index is the one that is built anew of its points."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from effort import examples
from hypothesis import Phase
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from index_cases import COLUMNS, Expected, check_holds, lists, payload, stored_payload, vectors

from rankfold import Index

METHODS = (
    {"method": "ran"},
    {"method": "ran", "solver": "region", "tol": 1e-10},
    {"method": "manifold"},
    {"method": "self_diffusion"},
    {"method": "distance"},
)
LAYOUTS = st.sampled_from(["pca", "graph"])
SEEDS = st.integers(0, 2**32 - 1)


class Changing(RuleBasedStateMachine):
    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory()
        self.n_saved = self.n_named = 0
        self.places = {}

    @initialize(
        seed=SEEDS,
        n=st.integers(1, 30),
        metric=st.sampled_from(["euclidean", "cosine"]),
        layout=LAYOUTS,
    )
    def build(self, seed, n, metric, layout):
        self.rng, self.expected = np.random.default_rng(seed), Expected()
        self.path = Path(self.folder.name) / "index"
        ids, X, columns = self.new(n)
        self.index = Index.build(X, ids, columns, path=self.path, metric=metric, layout=layout)
        self.expected.add(ids, X, columns)
        self.reader = Index.open(self.path)

    def new(self, n):
        first, self.n_named = self.n_named, self.n_named + n
        ids = [i if i % 2 else f"name {i}" for i in range(first, first + n)]
        return ids, vectors(self.rng, n), payload(self.rng, n)

    def some(self, most):
        n = self.rng.integers(1, min(most, len(self.expected.ids)) + 1)
        return [self.expected.ids[i] for i in self.rng.permutation(len(self.expected.ids))[:n]]

    @rule(n=st.integers(1, 6))
    def add(self, n):
        ids, X, columns = self.new(n)
        self.index.add(X, ids, columns)
        self.expected.add(ids, X, columns)

    @precondition(lambda self: self.expected.ids)
    @rule(most=st.integers(1, 40))
    def remove(self, most):
        ids = self.some(most)
        self.index.remove(ids)
        self.expected.remove(ids)

    @precondition(lambda self: self.expected.ids)
    @rule(again=st.booleans())
    def move(self, again):
        ids = self.some(5)
        _, X, _ = self.new(len(ids))
        if again:  # to where they are, which makes copies of their distances, or others
            X = np.array([self.expected.vectors[name] for name in ids])
        self.index.update(ids, vectors=X)
        self.expected.move(ids, X)
        for name in ids:
            del self.places[name]

    @precondition(lambda self: self.expected.ids)
    @rule(column=st.sampled_from(COLUMNS))
    def describe(self, column):
        ids = self.some(5)
        values = payload(self.rng, len(ids))[column]
        self.index.update(ids, payload={column: values})
        for name, value in zip(ids, values, strict=True):
            self.expected.payload[name][column] = value

    @rule(layout=LAYOUTS)
    def draw(self, layout):
        self.index.lay_out(layout)
        self.places = {}

    @rule()
    def merge(self):
        self.index.save()

    @rule()
    def save_elsewhere(self):
        self.n_saved += 1
        self.reader.close()
        self.path = Path(self.folder.name) / f"saved {self.n_saved}"
        self.index.save(self.path)
        self.reader = Index.open(self.path)

    @rule()
    def reopen(self):
        self.index.close()
        self.index = Index.open(self.path, write=True)

    @invariant()
    def holds_what_it_must(self):
        check_holds(self.index, self.expected)
        assert self.reader.ids == self.index.ids
        assert stored_payload(self.reader) == stored_payload(self.index)
        for ours, theirs in zip(lists(self.reader), lists(self.index), strict=True):
            np.testing.assert_array_equal(ours, theirs)

    @invariant()
    def points_keep_their_places(self):
        ids, places = self.index.places()
        assert self.reader.places()[0] == ids
        np.testing.assert_array_equal(self.reader.places()[1], places)
        found = dict(zip(ids, map(tuple, places.tolist()), strict=True))
        kept = {name: place for name, place in self.places.items() if name in found}
        assert kept == {name: found[name] for name in kept}
        self.places = found

    @invariant()
    def answers_like_one_built_anew(self):
        if not self.expected.ids:
            assert len(self.index.query(vectors=np.ones(3))) == 0
            return
        query = {"ids": self.some(3), "vectors": vectors(self.rng, 1), "top": 100}
        with self.expected.anew(self.index) as fresh:
            for method in METHODS:
                found, true = (one.query(**method, **query) for one in (self.index, fresh))
                scores = dict(zip(true.ids, true.scores, strict=True))
                assert sorted(map(str, found.ids)) == sorted(map(str, true.ids))
                difference = [scores[name] for name in found.ids] - found.scores
                most = 1e-8 * np.abs(true.scores).max(initial=1.0)
                assert np.abs(difference).max(initial=0.0) <= most
                assert (np.diff(found.scores) <= 0).all()

    def teardown(self):
        if hasattr(self, "index"):
            self.reader.close()
            self.index.close()
        self.folder.cleanup()


TestChanging = Changing.TestCase
TestChanging.settings = examples(
    8,
    steps=12,
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes
)
