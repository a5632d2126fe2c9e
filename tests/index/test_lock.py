"""Many together or one alone, and whoever wants to be alone goes first."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from rankfold import InputError
from rankfold.index.backend import ReadWriteLock

LONG = 60
"""Seconds after which a thread that waits in vain gives up, so that a test fails."""


class Inside:
    """A thread that is inside of a lock until it is told to leave."""

    def __init__(self, entrance):
        self._entered, self._leave = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._stay, args=(entrance,))

    def _stay(self, entrance):
        with entrance:
            self._entered.set()
            assert self._leave.wait(LONG)

    def __enter__(self):
        self._thread.start()
        return self

    def enter(self):
        """Wait until it is inside."""
        assert self._entered.wait(LONG)

    @property
    def entered(self):
        return self._entered.is_set()

    def leave(self):
        self._leave.set()
        self._thread.join(LONG)
        assert not self._thread.is_alive()

    def __exit__(self, *_):
        self.leave()


def wants_to_be_alone(lock, n_threads=1):
    """Wait until so many threads have shown that they want to be alone."""
    moment = threading.Event()
    for _ in range(100 * LONG):
        if len(lock.alone) == n_threads:
            return
        moment.wait(0.01)
    raise AssertionError("nobody wants to be alone")


def test_several_are_together():
    lock = ReadWriteLock()
    with Inside(lock.reading()) as one, Inside(lock.reading()) as other, lock.reading():
        one.enter()
        other.enter()


def test_nobody_is_with_one_who_is_alone():
    lock = ReadWriteLock()
    with Inside(lock.writing()) as alone:
        alone.enter()
        with Inside(lock.reading()) as reader, Inside(lock.writing()) as another:
            wants_to_be_alone(lock, 2)
            assert not reader.entered
            assert not another.entered
            alone.leave()
            another.enter()
            assert not reader.entered
            another.leave()
            reader.enter()


def test_who_wants_to_be_alone_goes_before_those_who_come_later():
    lock = ReadWriteLock()
    with Inside(lock.reading()) as first:
        first.enter()
        with Inside(lock.writing()) as alone:
            wants_to_be_alone(lock)
            with Inside(lock.reading()) as later:
                assert not alone.entered
                first.leave()
                alone.enter()
                assert not later.entered
                alone.leave()
                later.enter()


def test_who_is_inside_enters_again_while_somebody_waits_to_be_alone():
    lock = ReadWriteLock()
    alone = Inside(lock.writing())
    with lock.reading():
        alone.__enter__()
        wants_to_be_alone(lock)
        with lock.reading():
            assert not alone.entered
        with pytest.raises(InputError, match="same thread reads"), lock.writing():
            pass
        assert not alone.entered
    alone.enter()
    alone.leave()


def test_who_is_alone_enters_again():
    lock = ReadWriteLock()
    with lock.writing(), lock.writing(), lock.reading(), lock.reading(), lock.writing():
        pass
    with Inside(lock.reading()) as reader:
        reader.enter()


@pytest.mark.parametrize("entrance", ["reading", "writing"])
def test_an_error_inside_lets_others_in(entrance):
    lock = ReadWriteLock()
    with pytest.raises(KeyboardInterrupt), getattr(lock, entrance)():
        raise KeyboardInterrupt
    for other in (lock.reading(), lock.writing()):
        with Inside(other) as thread:
            thread.enter()


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="needs signals to threads")
@pytest.mark.parametrize(("inside", "entrance"), [("reading", "writing"), ("writing", "reading")])
def test_ctrl_c_ends_the_wait_and_leaves_no_trace(inside, entrance):
    lock, main = ReadWriteLock(), threading.get_ident()
    shown = lock.alone if entrance == "writing" else lock.together

    def interrupt():
        while main not in shown:
            pass
        time.sleep(0.2)  # until it waits: Python sees a signal just before a wait only after it
        signal.pthread_kill(main, signal.SIGINT)

    with Inside(getattr(lock, inside)()) as thread:
        thread.enter()
        interrupting = threading.Thread(target=interrupt)
        interrupting.start()
        with pytest.raises(KeyboardInterrupt), getattr(lock, entrance)():
            pass
        interrupting.join()
        if inside == "reading":
            with Inside(lock.reading()) as another:
                another.enter()
        thread.leave()
    with lock.writing():
        pass


def test_numbers_add_up():
    """Readers never see the two halves of a change apart, and no change is lost."""
    lock, numbers, apart = ReadWriteLock(), [0, 0], []

    def change(_):
        with lock.writing():
            numbers[0] += 1
            with lock.writing():
                numbers[1] += 1

    def read(_):
        with lock.reading():
            first, second = numbers
            with lock.reading():
                apart.append(first != second or numbers != [first, second])

    with ThreadPoolExecutor(6) as threads:
        changes = threads.map(change, range(500))
        reads = threads.map(read, range(1500))
        list(changes), list(reads)
    assert numbers == [500, 500]
    assert not any(apart)
