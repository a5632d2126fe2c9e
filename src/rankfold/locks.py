"""A read-write lock: many readers at a time, or one writer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock, get_ident

from rankfold.check import InputError


class ReadWriteLock:
    """Lets threads in together, or one alone; whoever wants to be alone goes first.

    Each thread has a lock of its own, which it holds for as long as it is inside or wants to be
    alone, and which all others can see. There is nothing else to know, and others wait by these
    locks only; so an exception in any place, also that of Ctrl-C, leaves nobody waiting.

    1. Who comes to be together locks and shows its lock, then looks for those who want to be alone.
       If there are any, it unlocks, waits for them and tries again; else it is inside.
    2. Who wants to be alone locks and shows its lock, waits for its turn among those who want the
       same, then looks for those who are together and waits for each of them.

    Both show before they look, so of two at least one sees the other. If who comes together is not
    seen, it has shown its lock after the other has looked, hence looks later, sees the
    other and stays outside. So nobody is inside with one who is alone. Who waits in step 1 holds
    nothing, so nobody waits in a circle. After somebody has shown that it wants to be alone, nobody
    comes in, so it waits only for those inside and for others who want to be alone.

    A thread that is inside may enter again; one that is together with others cannot become
    alone, for two that tried would wait for each other.

    Examples
    --------
    >>> lock = ReadWriteLock()
    >>> with lock.writing(), lock.reading():
    ...     pass
    """

    def __init__(self) -> None:
        self._together: dict[int, Lock] = {}
        self._alone: dict[int, Lock] = {}
        self._turn = Lock()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Be inside with others who are together."""
        me = get_ident()
        if _holds(me, self._together) or _holds(me, self._alone):
            yield
            return
        mine = Lock()
        try:
            while True:
                with mine:
                    self._together[me] = mine
                    before = [lock for lock in list(self._alone.values()) if lock.locked()]
                    if not before:
                        yield
                        return
                for lock in before:
                    _wait_for(lock)
        finally:
            self._together.pop(me, None)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be inside alone."""
        me = get_ident()
        if _holds(me, self._together):
            raise InputError("this cannot be done while the same thread reads; let it end first.")
        if _holds(me, self._alone):
            yield
            return
        mine = Lock()
        try:
            with mine:
                self._alone[me] = mine
                with self._turn:
                    for lock in list(self._together.values()):
                        _wait_for(lock)
                    yield
        finally:
            self._alone.pop(me, None)


def _holds(thread: int, locks: dict[int, Lock]) -> bool:
    """Tell whether a thread is there; its lock knows, also where it was stopped half-way."""
    lock = locks.get(thread)
    return lock is not None and lock.locked()


def _wait_for(lock: Lock) -> None:
    with lock:
        pass
