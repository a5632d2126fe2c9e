"""Several threads ask one index at the same time, beside changes here and in other processes."""

import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import growing_index as growing
import numpy as np
import pytest
from growing_index import Writer
from index_cases import backend_of, built, fitted_rankers, vectors

from rankfold import RAN, Distance, Index, ManifoldRanking
from rankfold.datasets.synthetic import sheets
from rankfold.errors import StorageError
from rankfold.index import executor, query

LONG = 60
"""Seconds after which a thread that waits in vain gives up, so that a test fails."""

NEW = vectors(np.random.default_rng(9), 4)


@pytest.fixture(scope="module")
def large():
    """Return an index that is asked locally, with removed and new points."""
    X = sheets(6000, n_sheets=6).X
    with Index.build(X, payload={"price": np.arange(6000) % 10}, n_neighbors=5) as index:
        index.remove([7, 8])
        index.add(X[7:8] + 0.01)
        yield index


def told(results):
    """Return everything that an answer says."""
    return results.ids, results.scores.tolist(), results.payload, results.ranking.solution.bound


def asked(index):
    """Return queries of many kinds."""
    return [
        lambda: told(index.query(0)),
        lambda: told(index.query([1, 9], top=50, where="price < 3")),
        lambda: told(index.query(3, diversity=0.5, offset=2)),
        lambda: told(index.query(vectors=index.vectors(5) + 0.01, negative=40)),
        lambda: told(index.query(2, max_iter=3, tol=1.0)),
        lambda: told(index.query(0, method="manifold", where="price = 1")),
        lambda: told(index.query(4, method="pagerank")),
        lambda: told(index.query(4, method="distance", include_query=True)),
        lambda: index.query(0).explain(100).to_dict(),
        lambda: index.query(0, method="manifold").explain(50).to_dict(),
    ]


def test_many_threads_get_the_answers_of_one(large):
    expected = [ask() for ask in asked(large)]
    order = np.random.default_rng(0).integers(0, len(expected), 120)
    with ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda number: asked(large)[number](), order))
    assert found == [expected[number] for number in order]


def meeting_in(monkeypatch, owner, name, n_threads=2):
    """Let a function begin only when so many threads are in it."""
    function, together = getattr(owner, name), threading.Barrier(n_threads, timeout=LONG)

    def met(*args, **named):
        together.wait()
        return function(*args, **named)

    monkeypatch.setattr(owner, name, met)


@pytest.mark.parametrize("ranker", [RAN, ManifoldRanking, Distance])
def test_queries_run_at_the_same_time(monkeypatch, ranker):
    method = {RAN: "ran", ManifoldRanking: "manifold", Distance: "distance"}[ranker]
    index, _ = built()
    with index:
        expected = told(index.query(3, method=method))
        meeting_in(monkeypatch, ranker, "_solve")
        with ThreadPoolExecutor(2) as threads:
            queries = [threads.submit(index.query, 3, method=method) for _ in range(2)]
            assert [told(query.result()) for query in queries] == [expected] * 2


def test_explanations_run_at_the_same_time(monkeypatch):
    index, _ = built()
    with index:
        results = index.query(3)
        expected = results.explain("p5").to_dict()
        meeting_in(monkeypatch, query, "explain")
        with ThreadPoolExecutor(2) as threads:
            reasons = [threads.submit(results.explain, "p5") for _ in range(2)]
            assert [reason.result().to_dict() for reason in reasons] == [expected] * 2


class Paused:
    """Stops a function of a ranker when it begins, until it is told to go on."""

    def __init__(self, monkeypatch, owner, name):
        self._begun, self._go_on = threading.Event(), threading.Event()
        function = getattr(owner, name)

        def paused(*args, **named):
            self._begun.set()
            assert self._go_on.wait(LONG)
            return function(*args, **named)

        monkeypatch.setattr(owner, name, paused)

    def wait(self):
        """Wait until the function has begun."""
        assert self._begun.wait(LONG)

    def go_on(self):
        self._go_on.set()


def wait_until(holds):
    moment = threading.Event()
    for _ in range(100 * LONG):
        if holds():
            return
        moment.wait(0.01)
    raise AssertionError("it does not come to that")


def test_a_change_waits_for_a_query_and_goes_before_the_next(monkeypatch):
    index, _ = built()
    with index, ThreadPoolExecutor(3) as threads:
        before, paused = told(index.query(3, top=100)), Paused(monkeypatch, RAN, "_solve")
        running = threads.submit(index.query, 3, top=100)
        paused.wait()
        change = threads.submit(index.add, NEW[:1], ids=["new"])
        wait_until(lambda: backend_of(index).lock.alone)
        later = threads.submit(index.query, 3, top=100)
        assert not change.done()
        paused.go_on()
        assert told(running.result()) == before
        assert change.result() == ["new"]
        assert "new" in later.result().ids


def test_a_change_is_made_while_threads_never_cease_to_ask():
    index, _ = built()
    changed = threading.Event()

    def ask():
        n_asked = 0
        while not changed.is_set():
            index.query(3)
            n_asked += 1
        return n_asked

    with index, ThreadPoolExecutor(4) as threads:
        asking = [threads.submit(ask) for _ in range(4)]
        try:
            for number in range(20):
                index.add(NEW[:1] + number, ids=[f"new {number}"])
        finally:
            changed.set()
        assert all(thread.result() > 0 for thread in asking)
        assert len(index) == 60


def test_close_waits_for_a_query(monkeypatch):
    index, _ = built()
    before, paused = told(index.query(3)), Paused(monkeypatch, RAN, "_solve")
    with ThreadPoolExecutor(3) as threads:
        running = threads.submit(index.query, 3)
        paused.wait()
        closing = threads.submit(index.close)
        wait_until(lambda: backend_of(index).lock.alone)
        later = threads.submit(index.query, 3)
        assert not closing.done()
        paused.go_on()
        assert told(running.result()) == before
        closing.result()
        with pytest.raises(StorageError, match="closed"):
            later.result()


def test_a_query_that_is_stopped_lets_changes_in(monkeypatch):
    index, _ = built()

    def stopped(*_, **__):
        raise KeyboardInterrupt

    with index:
        with monkeypatch.context() as patch:
            patch.setattr(RAN, "_solve", stopped)
            with pytest.raises(KeyboardInterrupt):
                index.query(3)
        with ThreadPoolExecutor(1) as threads:
            threads.submit(index.add, NEW[:1], ids=["new"]).result(LONG)
        assert "new" in index.query(3, top=100).ids


def test_a_method_is_fitted_once_for_all_threads(monkeypatch):
    index, _ = built()
    fit, fitted, start = RAN.fit, [], threading.Barrier(6, timeout=LONG)

    def counted(ranker, X):
        fitted.append(ranker.smoothness)
        return fit(ranker, X)

    def ask(_):
        start.wait()
        return told(index.query(3, smoothness=7.0))

    monkeypatch.setattr(RAN, "fit", counted)
    with index, ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(ask, range(6)))
    assert fitted == [7.0]
    assert answers == answers[:1] * 6


def test_a_fit_keeps_no_other_method_waiting(monkeypatch):
    index, _ = built()
    with index, ThreadPoolExecutor(1) as threads:
        expected, paused = told(index.query(3)), Paused(monkeypatch, ManifoldRanking, "_fit")
        fitting = threads.submit(index.query, 3, method="manifold")
        paused.wait()
        assert told(index.query(3)) == expected
        assert not fitting.done()
        paused.go_on()
        assert len(fitting.result()) == 10


def test_what_cannot_be_fitted_leaves_the_others():
    index, _ = built()
    with index:
        index.query(3)
        known = list(fitted_rankers(index))
        for number in range(6):
            with pytest.raises(ValueError, match="smoothness"):
                index.query(3, smoothness=-1.0 - number)
        assert list(fitted_rankers(index)) == known
        assert not index._executor.rankers.fitting


def nearest_red(index):
    """Return ids, distances and payload of all red points, nearest first."""
    found = index.query(vectors=[0.0] * 3, method="distance", top=500, where='color = "red"')
    rows = [tuple(sorted(row["payload"].items())) for row in found.rows()]
    return sorted(zip(found.ids, np.round(-found.scores, 6).tolist(), rows, strict=True))


def expected_red(number):
    """Return the same of what the index holds after so many changes."""
    expected = growing.after(number)
    return sorted(
        (name, round(float(np.linalg.norm(expected.vectors[name])), 6), tuple(sorted(
            expected.payload[name].items()))) for name in expected.ids
        if expected.payload[name]["color"] == "red")  # fmt: skip


def ask_while(threads, index, going_on, answered=None):
    """Let three threads ask until told otherwise; return the different answers of all."""

    def ask(_):
        found = [nearest_red(index)]
        while going_on():
            answer = nearest_red(index)
            if answered is not None:
                answered.set()
            if answer != found[-1]:
                found.append(answer)
        return found

    return [threads.submit(ask, number) for number in range(3)]


def check_are_states(answers, most):
    """Require that each answer is that of one state, and that none is older than one before."""
    states = [expected_red(number) for number in range(most + 1)]
    for found in answers:
        number = 0
        for answer in found:
            number = next(n for n in range(number, most + 2) if n > most or states[n] == answer)
            assert number <= most


def test_each_answer_is_that_of_one_state(tmp_path):
    """Ids, payload, condition and vectors: also where payload alone has changed."""
    growing.create(tmp_path / "index")
    expected, changed, answered = growing.first(), threading.Event(), threading.Event()
    with Index.open(tmp_path / "index", write=True) as index, ThreadPoolExecutor(3) as threads:
        asking = ask_while(threads, index, lambda: not changed.is_set(), answered)
        try:
            for number in range(60):
                growing.change(index, expected, number)
                if number % 7 == 0:
                    index.save()
                    for _ in range(4):  # so that one thread has begun to ask after the change
                        answered.clear()
                        assert answered.wait(60)
        finally:
            changed.set()
        answers = [thread.result() for thread in asking]
        assert nearest_red(index) == expected_red(60)
    check_are_states(answers, 60)
    assert max(map(len, answers)) > 2


def test_each_answer_is_that_of_one_state_of_another_process(tmp_path):
    growing.create(tmp_path / "index")
    seen = set()
    with (
        Index.open(tmp_path / "index") as index,
        Writer(tmp_path / "index") as writer,
        ThreadPoolExecutor(3) as threads,
    ):
        writer.start(0)
        ended = threading.Event()
        asking = ask_while(threads, index, lambda: not ended.is_set())
        try:
            while len(seen) < 4:
                seen.add(index.info()["generation"])
        finally:
            ended.set()
            answers = [thread.result() for thread in asking]
            last = writer.kill()
    check_are_states(answers, last + 1)
    assert max(map(len, answers)) > 2


SOAK = """
import ctypes, threading
from pathlib import Path
import numpy as np
from rankfold import Index
from rankfold.index import executor

def resident_mb():
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

executor.MOST_FITTED = 1
X = np.random.default_rng(0).normal(size=(1200, 6)).astype(np.float32)
held = []
with Index.build(X, n_neighbors=10) as index:
    for turn in range(16):
        if turn % 4 == 3:
            index.remove(index.add(X[:1] + turn))
        asked = {"smoothness": 1.0 + turn, "n_neighbors": 8 + turn % 5}
        thread = threading.Thread(target=index.query, args=(0,), kwargs=asked)
        thread.start()
        thread.join()
        held.append(resident_mb())
    (kept,) = index._executor.rankers.kept.values()
    print(min(held[-3:]) - min(held[4:7]), executor.bytes_of(kept) / 2**20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_changes_and_other_parameters_from_many_threads_leave_no_memory_behind():
    """In a process of its own, with one heap: what others have freed does not blur it."""
    environment = {**os.environ, "MALLOC_ARENA_MAX": "1"}
    script = [sys.executable, "-c", SOAK]
    told = subprocess.run(script, capture_output=True, text=True, check=True, env=environment)
    growth, size = map(float, told.stdout.split())
    assert size > 2
    assert growth < 3 * size  # of nine that were fitted between


def test_rankers_are_kept_up_to_a_number_of_bytes(monkeypatch):
    X = np.random.default_rng(0).normal(size=(300, 4))
    with Index.build(X, n_neighbors=5) as index:
        for smoothness in (1.0, 2.0, 3.0):
            index.query(0, smoothness=smoothness)
        kept = fitted_rankers(index)
        assert len(kept) == 3
        sizes = [executor.bytes_of(ranker) for ranker in kept.values()]
        monkeypatch.setattr(executor, "MOST_BYTES", int(1.5 * max(sizes)))
        index.query(0, smoothness=4.0)
        assert ["smoothness', 4.0" in key for key in kept] == [True]
        monkeypatch.setattr(executor, "MOST_BYTES", 1)
        index.query(0, smoothness=5.0)
        assert len(kept) == 1  # the last one is kept in any case
