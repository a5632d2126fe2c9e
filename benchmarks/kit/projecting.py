"""From measured constants to databases that are too large to measure here."""

import json
import re
from dataclasses import dataclass
from math import ceil, log

from kit.report import OUT
from rankfold.neighbors.inverted import CELLS_PER_ROOT

WORKERS, FEATURES = 2, 32
"""Of benchmarks/cluster.py, index.py and neighbor_lists.py: processes of one thread, features."""

GB, HOURS_A_MONTH = 1e9, 730


def read(name):
    """Return the results of a benchmark."""
    path = OUT / f"{name}.json"
    if not path.is_file():
        raise SystemExit(f"there is no {path}: run benchmarks/{name}.py first, with --large")
    return json.loads(path.read_text())


@dataclass(frozen=True)
class Constant:
    """A number, and where it was measured."""

    what: str
    value: float
    source: str

    def row(self):
        """Return a row of a table."""
        return {"what": self.what, "value": self.value, "from": f"{self.source}.json"}


class Constants:
    """All that was measured; every number that is read is noted."""

    def __init__(self):
        self.noted = {}
        room, cluster = read("databases"), read("cluster")
        index, lists = read("index")["Costs"], read("neighbor_lists")["lists"]
        self.room = {row["features"]: row for row in room["Room in PostgreSQL"]}
        self.kept = {(row["data"], row["in"]): row for row in room["Keeping"]}
        self.queries = room["Queries"]
        self._cores = int(re.search(r"(\d+) cores", room["machine"])[1])
        self._build, self._search, self._lists = cluster["Build"][-1], index[-2:], lists[-1]

    def note(self, what, value, source):
        """Keep a number for the table of constants, and return it."""
        self.noted.setdefault(what, Constant(what, value, source))
        return value

    def bytes(self, what, n_features):
        """Return the bytes of a point in PostgreSQL: ``points``, ``lists`` or ``search``."""
        value = self.room[n_features][f"{what}, bytes a point"]
        names = {"points": "its row", "lists": "its lists", "search": "in the HNSW index"}
        return self.note(f"bytes of a point, {names[what]}, d = {n_features}", value, "databases")

    def seconds(self, what, n_features):
        """Return the seconds of a point: ``copied``, or ``HNSW built``, then on all cores."""
        row = self.room[n_features]
        cores = self._cores if what == "HNSW built" else 1
        value = cores * row[f"{what} s"] / row["points"]
        label = f"core-seconds of a point, {what}, d = {n_features}"
        n_points = self.note(
            f"points copied and indexed, d = {n_features}", row["points"], "databases"
        )
        return self.note(label, value, "databases"), n_points

    @property
    def lists(self):
        """Core-seconds of an index that Dask builds, and its points; of 32 features."""
        n_points = self.note("points that Dask built", self._build["points"], "cluster")
        took = self.note("seconds that Dask took with 2 workers", self._build["Dask s"], "cluster")
        return WORKERS * took, n_points

    @property
    def growth(self):
        """The power of the number of points with which the search for lists has grown."""
        small, large = self._search
        value = log(large["search s"] / small["search s"]) / log(large["points"] / small["points"])
        span = f"{small['points']:,} to {large['points']:,} points"
        return self.note(f"power with which the search grows, {span}", value, "index")

    @property
    def scanned(self):
        """Numbers of vectors that one core looks at in a second, in a plain query."""
        row = self._search[-1]
        value = row["points"] * FEATURES / (row["one plain query ms"] / 1000)
        return self.note("numbers of vectors scanned by a core in a second", value, "index")

    @property
    def products(self):
        """Numbers that one core multiplies in a second where everybody is compared."""
        row = self.kept["digits", "folder"]
        value = row["points"] ** 2 * row["features"] / row["build s"] / self._cores
        return self.note("numbers multiplied by a core in a second, all pairs", value, "databases")

    @property
    def visited(self):
        """Cells that a search for lists visits."""
        cells = CELLS_PER_ROOT * self._lists["points"] ** 0.5
        value = self._lists["compared"] * cells
        points = f"{self._lists['points']:,}"
        return self.note(f"cells visited by a search, {points} points", value, "neighbor_lists")


@dataclass(frozen=True)
class Machine:
    """What is rented, and for how much; none of it is measured."""

    memory_gb: float
    cores: int
    disk_gb: float
    usable: float
    core_hour: float
    memory_gb_hour: float
    disk_gb_month: float

    def needed(self, memory, disk):
        """Return how many machines hold so many bytes."""
        in_memory = memory / (self.usable * self.memory_gb * GB)
        return max(1, ceil(max(in_memory, disk / (self.usable * self.disk_gb * GB))))

    def month(self, n_machines):
        """Return the price of machines for a month."""
        hour = self.cores * self.core_hour + self.memory_gb * self.memory_gb_hour
        return n_machines * (HOURS_A_MONTH * hour + self.disk_gb * self.disk_gb_month)


def core_hours(constants, n_points, n_features):
    """Return the core-hours of making everything, by the way it is done."""
    took, n_built = constants.lists
    ratio, wider = n_points / n_built, n_features / FEATURES
    hnsw, n_indexed = constants.seconds("HNSW built", n_features)
    copied, _ = constants.seconds("copied", n_features)
    spent = {
        "lists, growth as measured": took * wider * ratio**constants.growth,
        "lists, inverted file": took * wider * ratio**1.5,
        "lists, all pairs": n_points**2 * n_features / constants.products,
        "HNSW index": hnsw * n_points * log(n_points) / log(n_indexed),
        "copying": copied * n_points,
    }
    return {way: seconds / 3600 for way, seconds in spent.items()}


def on_disk(constants, n_features, way):
    """Return the bytes of disk a point."""
    kept = constants.bytes("points", n_features) + constants.bytes("lists", n_features)
    return kept + (constants.bytes("search", n_features) if way == "HNSW" else 0)
