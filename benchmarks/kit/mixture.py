"""Requests of every kind that a service gets, good and bad, drawn at random."""

import random
from collections import Counter, deque
from threading import Thread
from time import monotonic

import httpx

QUICK = ("ran", "ran", "ran", "distance", "pagerank")
SLOW = (
    "self_diffusion",
    "manifold",
    "transduction",
    "lcdp",
    "tensor",
    "k_reciprocal",
    "query_expansion",
)
"""Methods that look at all points; asked for now and then."""

KEPT = 50
"""Points that a client adds before it removes the oldest."""


class Mixture(Thread):
    """A client that asks until some moment; ``statuses`` and ``kinds`` count what it was told.

    Parameters
    ----------
    number : int
        Of the client, which is also its seed.
    address, name, key : str
    n_points, n_features : int
        Of the index.
    until : float
        By `monotonic`.
    """

    def __init__(self, number, address, name, key, n_points, n_features, until):
        super().__init__()
        self.statuses, self.kinds = Counter(), Counter()
        self._number, self._until = number, until
        self._n_points, self._n_features = n_points, n_features
        self._chance, self._mine, self._n_added = random.Random(number), deque(), 0  # noqa: S311
        self._headers = {"Authorization": f"Bearer {key}"}
        self._path, self._address = f"/v1/indexes/{name}", address

    def run(self):
        """Ask until it is time."""
        ways, shares = zip(*SHARES.items(), strict=True)
        with httpx.Client(
            base_url=self._address, headers=self._headers, timeout=120
        ) as self._client:
            while monotonic() < self._until:
                way = self._chance.choices(ways, shares)[0]
                response = way(self)
                self.kinds[way.__name__] += 1
                self.statuses[response.status_code] += 1

    def _post(self, verb, body):
        return self._client.post(f"{self._path}/{verb}", json=body)

    def _point(self):
        return self._chance.randrange(self._n_points)

    def _vector(self):
        return [self._chance.gauss(0, 1) for _ in range(self._n_features)]

    def query(self):
        """Ask by one point."""
        one = {"ids": [self._point()], "method": self._chance.choice(QUICK)}
        return self._post("query", {"queries": [one]})

    def batch(self):
        """Ask several queries at once."""
        queries = [{"ids": [self._point()], "top": 20, "columns": []} for _ in range(8)]
        return self._post("query", {"queries": queries})

    def feedback(self):
        """Ask by points that are right and points that are wrong."""
        first = self._point()
        others = [(first + step) % self._n_points for step in (1, 2, 3)]
        one = {"ids": [first, others[0]], "negative": others[1:], "weights": [1.0, 0.5]}
        return self._post("query", {"queries": [one]})

    def vector(self):
        """Ask by a vector that is not in the index."""
        return self._post("query", {"queries": [{"vectors": [self._vector()], "top": 50}]})

    def condition(self):
        """Ask for some points only, unlike each other, from the sixth on."""
        where = f"sheet = {self._chance.randrange(12)}"
        one = {"ids": [self._point()], "where": where, "diversity": 0.3, "offset": 5}
        return self._post("query", {"queries": [one]})

    def grouped(self):
        """Ask for the best of every sheet, and for those that score enough."""
        which = self._chance.choice([{"group_by": "sheet"}, {"min_score": self._chance.random()}])
        return self._post("query", {"queries": [{"ids": [self._point()], **which}]})

    def find(self):
        """Look for words in the payload, and beside a point."""
        words = f"sheet {self._chance.randrange(12)} {self._chance.randrange(10)}*"
        if self._chance.random() < 0.5:
            return self._post("find", {"words": words})
        return self._post("query", {"queries": [{"ids": [self._point()], "words": words}]})

    def rerank(self):
        """Put some points in order for a vector."""
        ids = self._chance.sample(range(self._n_points), 200)
        return self._post("rerank", {"query": self._vector(), "ids": ids})

    def scroll(self):
        """List points from some place on."""
        return self._post("scroll", {"after": self._point(), "vectors": True})

    def slider(self):
        """Ask with a smoothness, and perhaps a graph, that nobody has asked for before."""
        # So a ranker has to be fitted, and another one dropped.
        parameters = {"smoothness": self._chance.uniform(1, 30)}
        if self._chance.random() < 0.5:
            parameters["n_neighbors"] = self._chance.randint(5, 15)
        return self._post(
            "query", {"queries": [{"ids": [self._point()], "parameters": parameters}]}
        )

    def slow(self):
        """Ask a method that looks at all points."""
        one = {"ids": [self._point()], "method": self._chance.choice(SLOW)}
        return self._post("query", {"queries": [one]})

    def explain(self):
        """Ask for a reason."""
        first = self._point()
        point = (first + 1 + self._chance.randrange(50)) % self._n_points
        return self._post("explain", {"query": {"ids": [first]}, "id": point})

    def points(self):
        """Look a point up."""
        return self._post("points", {"ids": [self._point()], "vectors": True, "images": True})

    def map(self):
        """Fetch the map."""
        return self._client.get(f"{self._path}/map", params={"column": "sheet"})

    def watch(self):
        """Look at the service itself."""
        path = self._chance.choice(["/health", "/metrics", self._path, "/openapi.json", "/"])
        return self._client.get(path)

    def change(self):
        """Add two points, or remove the two that were added longest ago."""
        if len(self._mine) >= KEPT:
            return self._post("remove", {"ids": [self._mine.popleft(), self._mine.popleft()]})
        first = self._n_points + 2 * self._n_added + 10**9 * (1 + self._number)
        self._n_added += 1
        self._mine += [first, first + 1]
        new = [{"id": one, "vector": self._vector()} for one in (first, first + 1)]
        return self._post("add", {"points": new})

    def describe(self):
        """Give a point another payload."""
        if not self._mine:
            return self.change()
        sheet = {"sheet": self._chance.randrange(12)}
        return self._post("update", {"points": [{"id": self._mine[0], "payload": sheet}]})

    def bad(self):
        """Ask for something that cannot be had."""
        wrong = self._chance.choice([b"", b"{", b"[" * 5000, b'{"queries": [{"ids": [NaN]}]}'])
        json = {"Content-Type": "application/json"}
        path = self._chance.choice([f"{self._path}/query", f"{self._path}/add", "/v1/nothing"])
        return self._client.post(path, content=wrong, headers=json)

    def unknown(self):
        """Ask by a point that is not there."""
        return self._post("query", {"queries": [{"ids": [f"no-{self._chance.random()}"]}]})

    def stranger(self):
        """Come with a wrong key."""
        return self._client.get(self._path, headers={"Authorization": "Bearer somebody-else"})


SHARES = {
    Mixture.query: 40, Mixture.batch: 5, Mixture.feedback: 5, Mixture.vector: 10,
    Mixture.condition: 5, Mixture.slider: 5, Mixture.slow: 0.5, Mixture.explain: 5,
    Mixture.grouped: 3, Mixture.find: 4, Mixture.rerank: 3, Mixture.scroll: 2,
    Mixture.points: 5, Mixture.map: 0.5, Mixture.watch: 5, Mixture.change: 8, Mixture.describe: 2,
    Mixture.bad: 4, Mixture.unknown: 3, Mixture.stranger: 1.5,
}  # fmt: skip
