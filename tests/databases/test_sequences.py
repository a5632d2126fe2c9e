"""After any sequence of changes an index in a database is the one in a folder."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from databases.memory import MemoryDatabase
from databases.pairs import built, check_answers, check_same
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from index_cases import COLUMNS, payload, vectors

from rankfold import Index

METHODS = ({"method": "ran"}, {"method": "manifold"}, {"method": "euclidean"})


class Changing(RuleBasedStateMachine):
    @initialize(
        seed=st.integers(0, 2**32 - 1),
        n=st.integers(1, 60),
        n_neighbors=st.sampled_from([2, 5]),
        layout=st.sampled_from(["pca", "none"]),
    )
    def build(self, seed, n, n_neighbors, layout):
        self.rng, self.n_named, self.n_saved = np.random.default_rng(seed), 0, 0
        self.home = TemporaryDirectory()
        ids, X, columns = self.new(n)
        self.database = MemoryDatabase()
        made = {"n_neighbors": n_neighbors, "layout": layout}
        self.folder, self.table = built(self.database, "x", X, ids, columns, **made)
        self.reader = Index.open("x", engine=self.database)

    def new(self, n):
        first, self.n_named = self.n_named, self.n_named + n
        ids = [i if i % 2 else f"name {i}" for i in range(first, first + n)]
        X = vectors(self.rng, n).astype(np.float32)
        return ids, X, payload(self.rng, n)

    def some(self, most):
        ids = self.folder.ids
        n = self.rng.integers(1, min(most, len(ids)) + 1)
        return [ids[i] for i in self.rng.permutation(len(ids))[:n]]

    @property
    def both(self):
        return self.folder, self.table

    @rule(n=st.integers(1, 8))
    def add(self, n):
        ids, X, columns = self.new(n)
        for index in self.both:
            index.add(X, ids, columns)

    @precondition(lambda self: len(self.folder))
    @rule(most=st.integers(1, 50))
    def remove(self, most):
        ids = self.some(most)
        for index in self.both:
            index.remove(ids)

    @precondition(lambda self: len(self.folder))
    @rule(again=st.booleans())
    def move(self, again):
        ids = self.some(5)
        X = self.folder.vectors(ids) if again else self.new(len(ids))[1]
        for index in self.both:
            index.update(ids, vectors=X)

    @precondition(lambda self: len(self.folder))
    @rule(column=st.sampled_from(COLUMNS))
    def describe(self, column):
        ids = self.some(5)
        values = payload(self.rng, len(ids))[column]
        for index in self.both:
            index.update(ids, payload={column: values})

    @rule()
    def copy(self):
        self.n_saved += 1
        self.table.copy("x", engine=self.database, replace=True)
        self.folder.save(Path(self.home.name) / f"saved {self.n_saved}")

    @invariant()
    def both_are_the_same(self):
        check_same(self.folder, self.table)
        check_same(self.folder, self.reader)

    @invariant()
    def both_answer_the_same(self):
        if len(self.folder):
            query = {"ids": self.some(3), "vectors": vectors(self.rng, 1), "top": 100}
            for method in METHODS:
                check_answers(self.folder, self.reader, **method, **query)
            check_answers(*self.both, ids=self.some(1), where="price > 50", top=4)

    def teardown(self):
        if hasattr(self, "folder"):
            for index in (*self.both, self.reader):
                index.close()
            self.home.cleanup()


TestChanging = Changing.TestCase
TestChanging.settings = settings(
    deadline=None,
    max_examples=10,
    stateful_step_count=12,
    phases=[Phase.reuse, Phase.generate],  # shrinking takes minutes
)


def test_points_that_move_enter_lists_that_are_searched_again_in_the_same_change():
    rng = np.random.default_rng(10)  # of sixty, the one in which a list reaches further than before
    X, moved = vectors(rng, 46), rng.permutation(46)[:22].tolist()
    folder, table = built(MemoryDatabase(), "x", X, n_neighbors=5)
    elsewhere = vectors(rng, 22).astype(np.float32)
    with folder, table:
        for index in (folder, table):
            index.update(moved, vectors=elsewhere)
        check_same(folder, table)
