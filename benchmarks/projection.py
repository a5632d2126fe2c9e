"""What would a hundred million points take, and a billion? Worked out, not measured.

**Nothing on this page was run at this size.** Constants that were measured on small databases are
carried to large ones by the models below. Both are listed, so that each can be replaced.

- *Room.* Bytes of a point in PostgreSQL do not depend on the number of points. HNSW has to be in
  memory; rows and lists may be on disk.
- *Without HNSW.* An inverted file of whole vectors takes 4 d + 8 bytes of memory, of numbers in 8
  bits d + 8; neither was measured in a database. An exact search scans all vectors in memory on all
  cores. A query for a point of the index needs no search at all, only lists: then a
  share of the lists is held in memory.
- *Lists.* An inverted file has 4 sqrt(n) cells. Finding the cell of a point, and looking into
  a constant number of cells of sqrt(n) / 4 points, both take sqrt(n) d for every point, so all take
  n^1.5 d. What was measured has grown more slowly; carried on, that is the lowest figure. Where
  data are diffuse, all pairs of shards have to be compared, n^2 d: the highest one. The time on c
  cores is core-hours / c, if storage keeps up.
- *HNSW* is built in n log n. Copying lists into a database is done by one process.
- *Network of a build.* Vectors are read and written three times until they lie in cells. Then every
  group of cells reads the cells around it: each vector at least once, at most as often as a search
  visits cells. All pairs of s shards, two of which fit into a worker, send every vector s times.
- *Queries.* RAN touches as many points in a large database as in a small one if the density is the
  same (see Growth). So trips and rows are those of a cold query that was measured; delays of
  network and disk are added. The search for a vector that is not in the index grows with log n.
  Where a query has fetched more than a quarter of all points it was not local, and nothing follows
  for more points.

Beyond one machine the database has to spread its tables itself. A Milvus cluster does so;
PostgreSQL needs an extension for it. Neither was tested with more than one machine. An index has
room for 2^31 points. Prices are parameters of the script and those of nobody in particular.
"""

from math import ceil, log

from kit.projecting import GB, Constants, Machine, core_hours, on_disk
from kit.projection_picture import picture
from kit.report import options, publish, table, versions

SIZES, WIDTHS = (10**8, 10**9), (128, 768)
ASSUMED = {
    "memory_gb": (64.0, "memory of a machine, GB"),
    "cores": (16, "cores of a machine"),
    "disk_gb": (2000.0, "disk of a machine, GB"),
    "usable": (0.75, "share of memory and disk that data may take"),
    "core_hour": (0.03, "price of a core for an hour"),
    "memory_gb_hour": (0.004, "price of a GB of memory for an hour"),
    "disk_gb_month": (0.1, "price of a GB of disk for a month"),
    "trip_ms": (0.5, "delay of a round trip, ms"),
    "read_ms": (0.1, "random read from disk, ms"),
    "reads_at_once": (32, "reads that a disk does at once"),
    "held_lists": (0.1, "share of lists held in memory where nothing is searched"),
    "build_cores": (256, "cores of the Dask cluster"),
}
MACHINE = tuple(ASSUMED)[:7]


def named(n_points):
    return f"10^{round(log(n_points, 10))}"


def memory_ways(constants, n_features, assumed):
    """Return the bytes of memory a point, by how the database searches."""
    return {
        "HNSW": constants.bytes("search", n_features),
        "inverted file": 4 * n_features + 8,
        "inverted file, 8 bits": n_features + 8,
        "exact": 4 * n_features,
        "none: stored points only": assumed["held_lists"] * constants.bytes("lists", n_features),
    }


def machines(constants, assumed):
    """Yield what keeps the points, by how they are searched."""
    machine = Machine(**{name: assumed[name] for name in MACHINE})
    for n_points in SIZES:
        for n_features in WIDTHS:
            for way, memory in memory_ways(constants, n_features, assumed).items():
                disk = n_points * on_disk(constants, n_features, way)
                needed = machine.needed(n_points * memory, disk)
                scan = n_points * n_features / (constants.scanned * needed * machine.cores)
                yield {
                    "points": named(n_points),
                    "d": n_features,
                    "search": way,
                    "memory GB": n_points * memory / GB,
                    "disk GB": disk / GB,
                    "machines": needed,
                    "price a month": machine.month(needed),
                    "scan of all s": scan if way == "exact" else None,
                }


def building(constants, assumed):
    """Yield the work of making an index."""
    price = (
        assumed["core_hour"] + assumed["memory_gb_hour"] * assumed["memory_gb"] / assumed["cores"]
    )
    for n_points in SIZES:
        for n_features in WIDTHS:
            for way, hours in core_hours(constants, n_points, n_features).items():
                cores = 1 if way == "copying" else assumed["build_cores"]
                yield {
                    "points": named(n_points),
                    "d": n_features,
                    "what": way,
                    "core-hours": hours,
                    "cores": cores,
                    "hours": hours / cores,
                    "price": hours * price,
                    "network TB": network(constants, n_points, n_features, way, assumed),
                }


def network(constants, n_points, n_features, way, assumed):
    """Return the least and the most bytes that a way sends."""
    vectors = 4 * n_features * n_points / 1e12
    if way == "lists, all pairs":
        of_worker = assumed["usable"] * assumed["memory_gb"] * GB / assumed["cores"]
        return f"{vectors * ceil(2 * 1e12 * vectors / of_worker):,.3g}"
    if way.startswith("lists"):
        return f"{7 * vectors:,.3g} to {(6 + constants.visited) * vectors:,.3g}"
    return None


def asking(constants, assumed):
    """Yield the latency of queries, none of whose rows are in any cache."""
    rows = {(row["data"], row["method"]): row for row in constants.queries
            if row["in"] == "PostgreSQL" and row["cache"] == "cold"}  # fmt: skip
    knn = {row["data"]: row["ms"] for row in constants.queries
           if row["in"] == "PostgreSQL" and row["method"] == "kNN"}  # fmt: skip
    for (data, method), row in rows.items():
        n_points = constants.kept[data, "PostgreSQL"]["points"]
        is_local = row["rows"] < n_points / 4
        for key in ("ms", "round trips", "rows"):
            constants.note(f"{data}, {method}, cold: {key}", row[key], "databases")
        found = constants.note(f"{data}: kNN of PostgreSQL, ms", knn[data], "databases")
        network = row["round trips"] * assumed["trip_ms"]
        disk = row["rows"] * assumed["read_ms"] / assumed["reads_at_once"]
        stored = row["ms"] + network + disk
        yield {
            "data": data,
            "method": method,
            "measured with": n_points,
            "round trips": row["round trips"],
            "rows": row["rows"],
            "local": "yes" if is_local else "no",
            "network ms": network if is_local else None,
            "disk ms": disk if is_local else None,
            "stored point ms": stored if is_local else None,
            **{f"vector ms, {named(n)}": stored + found * log(n) / log(n_points) if is_local
               else None for n in SIZES},
        }  # fmt: skip


def main():
    parser = options(__doc__)
    for name, (value, what) in ASSUMED.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(value), default=value, help=f"{what} ({value:g})")
    assumed = vars(parser.parse_args())
    constants = Constants()
    tables = {
        "Machines": table(machines(constants, assumed)),
        "Building": table(building(constants, assumed)),
        "Queries": table(asking(constants, assumed)),
    }
    figure = picture(constants, WIDTHS, assumed)
    tables["Measured constants"] = table(one.row() for one in constants.noted.values())
    tables["Assumptions"] = table(
        {"what": what, "value": f"{assumed[name]:g}", "option": f"`--{name.replace('_', '-')}`"}
        for name, (_, what) in ASSUMED.items()
    )
    intro = [*__doc__.split("\n\n", 1)[1].rstrip().splitlines(), "", versions("rankfold")]
    alt = "Disk, memory and core-hours against the number of points, on logarithmic axes."
    publish("projection", "constants, carried to a billion points", intro, tables, [], figure, alt,
            assumed["docs"])  # fmt: skip


if __name__ == "__main__":
    main()
