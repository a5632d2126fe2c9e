"""Clients of a service that change an index at the same time, and know what must be there.

Every client has points of its own, and changes two of them at a time: it adds, moves, describes and
removes them. So whoever knows what was answered knows what must be there, but for one change of
each client that was under way.
"""

from contextlib import contextmanager
from threading import Semaphore, Thread

import httpx

from rankfold import Index

N_FIRST = 30
PAIRS = 4
"""Pairs that a client keeps; the oldest one then makes room."""


def create(path):
    X = [[i % 7, i % 5, i % 3] for i in range(N_FIRST)]
    ids = [f"first{i}" for i in range(N_FIRST)]
    payload = {"price": list(range(N_FIRST))}
    Index.build(X, ids, payload, path=path, n_neighbors=4).close()


class Client(Thread):
    """Changes its own points until the service is gone."""

    def __init__(self, number):
        self.number, self.step = number, 0
        self.sure, self.possible, self.wrong = {}, None, []

    def begin(self, address, key, answered):
        super().__init__()
        self._address, self._answered = address, answered
        self._key = {"Authorization": f"Bearer {key}"}
        self.start()

    def run(self):
        with httpx.Client(base_url=self._address, headers=self._key, timeout=60) as client:
            try:
                while not self.wrong:
                    self._change(client)
            except httpx.TransportError:
                self._answered.release()

    def _change(self, client):
        self.step += 1
        verb, body, self.possible = self._next()
        response = client.post(f"/v1/indexes/living/{verb}", json=body)
        if response.status_code != 200:
            self.wrong.append(response.text)
        self.sure, self.possible = self.possible, None
        self._answered.release()

    def _next(self):
        """Return a verb, a body, and what is there afterwards: vector and price by id."""
        pairs = [list(self.sure)[place : place + 2] for place in range(0, len(self.sure), 2)]
        vector = [float(self.step % 9), float(self.number), float(self.step % 7)]
        if len(pairs) > PAIRS:
            gone = pairs[0]
            return "remove", {"ids": gone}, {k: v for k, v in self.sure.items() if k not in gone}
        if self.step % 3 == 0 or not pairs:
            verb, ids = "add", [f"{self.number}-{self.step}-{half}" for half in "ab"]
        else:
            verb, ids = "update", pairs[self.step % len(pairs)]
        point = {"payload": {"price": self.step}}
        if verb == "add" or self.step % 3 == 1:
            point["vector"] = vector
        known = {name: (point.get("vector") or self.sure[name][0], self.step) for name in ids}
        return verb, {"points": [{"id": name, **point} for name in ids]}, {**self.sure, **known}


@contextmanager
def writing(clients, address, key):
    """Let clients write; yield what counts their answers; at the end they must have ended."""
    answered = Semaphore(0)
    for client in clients:
        client.begin(address, key, answered)
    yield answered
    for client in clients:
        client.join(120)
        assert not client.is_alive()
        assert not client.wrong


def held_by(index, client):
    """Return vector and price of all points of a client."""
    ids = [name for name in index.ids if name.startswith(f"{client.number}-")]
    if not ids:
        return {}
    prices, vectors = index.payload(ids)["price"], index.vectors(ids).tolist()
    return dict(zip(ids, zip(vectors, prices, strict=True), strict=True))


def check(index, clients, certain):
    """Require what was answered and, of what was under way, all or nothing; if certain, nothing.

    Clients then know what is there.
    """
    n_mine = 0
    for client in clients:
        held, possible = held_by(index, client), client.possible
        assert held == client.sure or (held == possible and not certain), client.step
        client.sure = client.sure if held == client.sure else possible
        n_mine += len(held)
    assert len(index) == n_mine + N_FIRST
    found = index.query(vectors=[1.0, 2.0, 3.0], top=len(index)).ids
    assert sorted(found) == sorted(index.ids)


def wait_for(answered, n_answers):
    for _ in range(n_answers):
        assert answered.acquire(timeout=120)
