"""Files that anybody may have written, under a fuzzer: they are read, or refused by one line.

A coverage-guided fuzzer (atheris, which is libFuzzer) changes files that can be read, and looks
for changes that reach other lines of rankfold. Every file must be read, or be refused by a
one-line error that names it. Anything else, such as another exception, a crash, a file
beside the index that was touched, or a minute without an answer, ends the run with the bytes that
did it.

Readers of input files get the bytes as they are. Those of an index have checksums in their way,
which hardly any change gets past; so beside the plain bytes of ``index.sqlite`` there are arrays,
settings and changes that are altered first and then written with checksums that fit, as somebody
would who means harm. What opens is asked, changed and merged.

HDF5 files are left out unless they are named: the library that reads them may not come back from a
damaged one.

    python benchmarks/fuzz.py --seconds 600            # each kind of file, ten minutes
    python benchmarks/fuzz.py --seconds 60 npy arrays  # only these
    python benchmarks/fuzz.py --corpus kept csv        # go on from what earlier runs have found
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from time import process_time

SUFFIXES = ("npy", "npz", "csv", "tsv", "jsonl", "parquet", "h5", "png")
OF_INDEXES = ("database", "segment", "arrays", "graph", "settings", "changes", "learning")
TARGETS = (*SUFFIXES, "payload", "embedding", *OF_INDEXES)
ENDLESS = ("h5",)
LONGEST, MEMORY = 60, 4096
"""Seconds and megabytes that a single file may take."""

LOST = 3600
"""Seconds by the clock after which a process that computes nothing is taken for stuck."""

QUICK = Path("/dev/shm")  # noqa: S108 - nothing here has to last


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=5, help="of the processor, for each")
    parser.add_argument("--corpus", type=Path, metavar="FOLDER", help="keep what reaches new lines")
    parser.add_argument("--inside", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    return given


def main():
    """Fuzz each target in a process of its own, and print how many files were tried."""
    given = parsed()
    try:
        import atheris  # noqa: F401
    except ModuleNotFoundError:
        sys.exit("this needs atheris (Linux, Python 3.11 to 3.13): pip install atheris")
    failed = []
    print("| files | tried | new lines reached by | seconds | anything but points or one line |")
    print("|---|---|---|---|---|", flush=True)
    for target in given.targets or [target for target in TARGETS if target not in ENDLESS]:
        with tempfile.TemporaryDirectory(dir=QUICK if QUICK.is_dir() else None) as folder:
            done = subprocess.run(  # noqa: S603
                [
                    *(sys.executable, __file__, target),
                    *(f"--seconds={given.seconds}", f"--inside={folder}"),
                    *([f"--corpus={given.corpus}"] if given.corpus else []),
                ],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
        tried = re.findall(r"number_of_executed_units:\s*(\d+)", done.stderr)
        kept = re.findall(r"new_units_added:\s*(\d+)", done.stderr)
        found = "none" if done.returncode == 0 and tried else "YES"
        numbers = (f"{int((one or ['0'])[-1]):,}" for one in (tried, kept))
        print(f"| {target} | {' | '.join(numbers)} | {given.seconds} | {found} |", flush=True)
        if found != "none":
            failed.append(target)
            print(done.stdout[-5000:], done.stderr[-1000:], sep="\n", file=sys.stderr)
    sys.exit(1 if failed else 0)


def fuzz(target, folder, seconds, corpus):
    """Fuzz one target in this process, which ends with it."""
    import atheris

    with atheris.instrument_imports(include=["rankfold"]):
        import rankfold
        import rankfold.index.backend
        import rankfold.inputs
        import rankfold.storage  # noqa: F401
    (folder / "corpus").mkdir()
    corpus = corpus / target if corpus else folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    test, seeds = prepared(target, folder)
    for number, seed in enumerate(seeds):
        (corpus / str(number)).write_bytes(seed)
        test(seed)
    limits = [f"-timeout={LOST}", f"-rss_limit_mb={MEMORY}"]
    longest = f"-max_len={max(2 * max(map(len, seeds)), 4096)}"
    shown = [
        "-print_final_stats=1",
        "-verbosity=0",
        f"-artifact_prefix={Path.cwd()}/fuzz-{target}-",
    ]
    timed = by_processor_time(test, seconds)
    atheris.Setup([sys.argv[0], *limits, longest, *shown, str(corpus)], timed)
    atheris.Fuzz()


def by_processor_time(test, seconds):
    """Return a test that ends the run in time, and fails for a file that takes too long.

    Time is that of the processor, so that a run may be slowed down or stopped for a while.
    """
    until = process_time() + seconds

    def timed(content):
        start = process_time()
        test(content)
        if process_time() - start > LONGEST:
            raise AssertionError(f"a file took more than {LONGEST} s")
        if process_time() > until:
            os.kill(os.getpid(), signal.SIGUSR1)  # libFuzzer prints its counts and ends

    return timed


def prepared(target, folder):
    """Return a function of the bytes to test, and bytes to begin with."""
    if target in SUFFIXES:
        return of_input(target, folder)
    if target == "payload":
        return of_payload(folder)
    return {
        "database": lambda: of_file(folder, "index.sqlite"),
        "segment": lambda: of_file(folder, "segments/list_indices-1.npy"),
        "learning": lambda: of_learning(folder),
        "embedding": lambda: of_embedding(folder),
        "graph": lambda: of_graph(),
        "arrays": lambda: of_arrays(folder),
        "settings": lambda: of_settings(folder),
        "changes": lambda: of_changes(folder),
    }[target]()


def refused(error, path):
    """Require an error of one line that names a file or its folder."""
    if not str(error).isprintable() or Path(path).name not in str(error):
        raise AssertionError(f"not one line about {path}: {error}") from error


def of_input(suffix, folder):
    """Let ``read_points`` read a file, or a folder of one image."""
    import h5py
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq
    from PIL import Image

    from rankfold.errors import InputError
    from rankfold.inputs import read_points

    place = folder / "input"
    place.mkdir()
    path = place / f"x.{suffix}"
    rows = np.random.default_rng(0).standard_normal((6, 4))
    if suffix == "npy":
        np.save(path, rows)
    elif suffix == "npz":
        np.savez(path, vectors=rows, ids=np.arange(6), name=["x"] * 6)
    elif suffix in ("csv", "tsv"):
        text = 'id,x,y,name\n1,0.5,2,tea\n2,3,4e-1,"mi,lk"\n'
        path.write_text(text.replace(",", "\t") if suffix == "tsv" else text)
    elif suffix == "jsonl":
        path.write_text(
            '{"id": "a", "vector": [1, 2.5], "year": 2021, "sold": true}\n\n'
            '{"id": "b", "vector": [3, -4e-1], "name": "mi\\u00e9l", "year": null}\n'
        )
    elif suffix == "parquet":
        columns = {"id": np.arange(6), "vector": rows.tolist(), "name": ["x"] * 6}
        pq.write_table(pa.table(columns), path)
    elif suffix == "h5":
        with h5py.File(path, "w") as file:
            file["train"] = rows
            file.attrs["distance"] = "angular"
    else:
        Image.fromarray((rows * 9 % 255).astype(np.uint8)).save(path)

    def test(content):
        path.write_bytes(content)
        try:
            points = read_points(place if suffix == "png" else path)
        except InputError as error:
            return refused(error, path)
        if not np.isfinite(points.vectors).all():
            raise AssertionError("vectors that are not finite")
        return None

    return test, [path.read_bytes()]


def of_payload(folder):
    """Let ``read_payload`` read a table."""
    from rankfold.errors import InputError
    from rankfold.inputs.files import read_payload

    path = folder / "x.csv"

    def test(content):
        path.write_bytes(content)
        try:
            read_payload(path)
        except InputError as error:
            refused(error, path)

    return test, [b"id,price,name\n1,2.5,tea\n2,,milk\n", b'id\tx\n"a\nb"\t007\n']


def of_embedding(folder):
    """Let ``ShapeEmbedding.load`` read a file, and make vectors with what it has read."""
    import numpy as np

    from rankfold.embedding import ShapeEmbedding
    from rankfold.errors import InputError

    path, rows = folder / "x.npz", np.random.default_rng(0).standard_normal((12, 3))
    ShapeEmbedding(n_components=4, n_neighbors=3).fit(rows).save(path)
    whole = path.read_bytes()
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    described = str(arrays.pop("described"))

    def test(content):
        if content[:1] == b"{":
            text = content.decode(errors="replace").replace("\0", "?")
            np.savez(path, described=np.array(text), **arrays)
        elif content[:1] == b"P":
            path.write_bytes(content)
        else:
            np.savez(path, described=np.array(described), **altered(content, arrays))
        try:
            loaded = ShapeEmbedding.load(path)
        except InputError as error:
            return refused(error, path)
        vectors, width = loaded.vectors(), loaded.n_features_in_
        found = loaded.transform(np.ones((1, width)))
        if not (np.isfinite(vectors).all() and np.isfinite(found).all()):
            raise AssertionError("vectors that are not finite")
        return None

    return test, [whole, described.encode(), bytes(range(40)), bytes(range(160, 200))]


@cache
def state(kind):
    """Return arrays and settings of an index of few points, searched in one way."""
    import numpy as np

    from rankfold.neighbors import DynamicEngine, FaissEngine

    rng = np.random.default_rng(0)
    X = rng.normal(size=(6, 4))[rng.integers(0, 6, 200)] * 9 + rng.normal(size=(200, 4)) / 50
    X = X.astype(np.float32)
    engine = None if kind == "exact" else FaissEngine(X, recall=0.1, index=kind)
    arrays, settings = DynamicEngine.build(X, "euclidean", 6, engine=engine, recall=0.1).state()
    arrays |= {"places": X[:, :2], "places_origin": X[0].astype(float), "places_axes": np.eye(4, 2)}
    everything = {"engine": settings, "n_neighbors": 4, "numbered": True, "layout": "pca"}
    return arrays, {**everything, "source": {}}


KINDS = ("exact", "flat", "ivf", "hnsw")


def use(path):
    """Do with an index what users do; refuse it or answer."""
    import numpy as np

    from rankfold import Index
    from rankfold.errors import InputError, StorageError
    from rankfold.storage import Store

    try:
        with Store.open(path) as store:
            store.verify()
        with Index.open(path, write=True) as index:
            for ids in index.ids[:2]:
                index.query(ids, top=5)
            width = index.info()["features"]
            index.query(vectors=np.ones((1, width)), top=5)
            index.add(np.ones((1, width)), ids=["new"])
            index.remove(index.ids[:1])
            index.save()
            index.places()
    except (InputError, StorageError) as error:
        if not str(error).isprintable():
            raise AssertionError(f"more than one line, or codes in it: {error!a}") from error


def watched(folder):
    """Return a function that requires that nothing beside the index was touched."""
    beside = folder / "beside"
    beside.mkdir()
    (beside / "thesis").write_bytes(b"years of work")
    names = {"beside", "corpus"}

    def check():
        found = {path.name for path in folder.iterdir() if not path.name.startswith("index")}
        if found != names or (beside / "thesis").read_bytes() != b"years of work":
            raise AssertionError(f"something beside the index was touched: {found}")

    return check


def of_file(folder, name):
    """Put other bytes into the place of one file of an index."""
    from rankfold.storage import Store

    arrays, settings = state("exact")
    whole, path, check = folder / "index-whole", folder / "index", watched(folder)
    Store.create(whole, arrays, settings, range(200), {"price": range(200)})

    def test(content):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        (path / name).write_bytes(content)
        use(path)
        check()

    return test, [(whole / name).read_bytes()]


def written(path, arrays, settings):
    """Write an index with checksums that fit, and tell whether a store takes it."""
    from rankfold.errors import InputError, StorageError
    from rankfold.storage import Store

    shutil.rmtree(path, ignore_errors=True)
    try:
        Store.create(path, arrays, settings, range(200))
    except (InputError, StorageError):
        return False
    return True


def altered(content, arrays):
    """Return arrays of which some are altered as bytes say: other numbers, shapes or types."""
    import atheris
    import numpy as np

    data, arrays = atheris.FuzzedDataProvider(content), dict(arrays)
    names = sorted(arrays)
    for _ in range(data.ConsumeIntInRange(1, 3)):
        name = names[data.ConsumeIntInRange(0, len(names) - 1)]
        array, how = arrays[name], data.ConsumeIntInRange(0, 5)
        if how == 0:
            arrays.pop(name)
            names.remove(name)
        elif how == 1:
            dtype = data.PickValueInList(["<i4", "<i8", "<f4", "<f8", "|b1", "|u1", "<f2"])
            with np.errstate(all="ignore"):
                arrays[name] = array.astype(dtype)
        elif how == 2:
            arrays[name] = array[: data.ConsumeIntInRange(0, len(array))]
        elif how == 3 and array.size:
            arrays[name] = array.reshape(-1)
        elif array.size:
            flat = array.copy()
            for _ in range(data.ConsumeIntInRange(1, 4)):
                place = data.ConsumeIntInRange(0, array.size - 1)
                value = np.frombuffer(data.ConsumeBytes(8).ljust(8, b"\xff"), "<i8")[0]
                kind = array.dtype.kind
                with np.errstate(all="ignore"):
                    flat.reshape(-1)[place] = (
                        np.int64(value).view(np.float64)
                        if kind == "f"
                        else np.array(value).astype(array.dtype)
                    )
            arrays[name] = flat
        if not names:
            break
    return arrays


def of_arrays(folder):
    """Alter arrays of an index; the first byte says how its points are searched."""
    path, check = folder / "index", watched(folder)

    def test(content):
        kind = KINDS[content[0] % len(KINDS)] if content else "exact"
        arrays, settings = state(kind)
        if written(path, altered(content[1:], arrays), settings):
            use(path)
        check()

    return test, [bytes([kind]) + bytes(range(40)) for kind in range(4)]


def of_graph():
    """Alter the graph that an index keeps; ask it by every solver, also after a change."""
    import numpy as np
    from scipy import sparse

    from rankfold import RAN
    from rankfold.errors import InputError
    from rankfold.graph.adaptive import ClosedForm
    from rankfold.neighbors import DynamicEngine, KeptGraph, check_state
    from rankfold.types import Neighbors

    arrays, settings = state("exact")
    engine_settings, few = settings["engine"], settings["n_neighbors"]
    lists = Neighbors(arrays["list_indices"], arrays["list_sq_distances"])
    graph = ClosedForm.of(lists.head(few + 1), few).symmetric()
    whole = KeptGraph(few, graph.indptr, graph.indices, graph.data).arrays()

    def test(content):
        crafted = altered(content, whole)
        if len(content) % 2:
            crafted = both_ways(crafted)
        engine = DynamicEngine.restore(dict(arrays), engine_settings)
        try:
            check_state({**arrays, **crafted}, engine_settings)
            engine.graph = KeptGraph.restore(crafted, few)
        except (InputError, KeyError):
            return
        ask(engine)
        engine.apply(engine.plan([3], np.ones((2, 4))))
        ask(engine)

    def both_ways(crafted):
        """Return a graph whose weights are from 0 to 1, the same both ways, if it is one at all."""
        try:
            starts, indices, weights = (crafted[name] for name in whole)
            rows = sparse.csr_array((weights.astype(float), indices, starts), shape=(200, 200))
            rows.check_format(full_check=True)
        except (KeyError, ValueError, TypeError):
            return crafted
        rows.data = np.clip(np.nan_to_num(rows.data), 0, 1).astype(np.float32)
        rows = rows.maximum(rows.T)
        rows.setdiag(0)
        rows = sparse.csr_array(rows)
        rows.eliminate_zeros()
        return KeptGraph(few, rows.indptr, rows.indices, rows.data).arrays()

    def ask(engine):
        for solver in ("region", "cg", "direct"):
            for budget in (20, None):
                ranker = RAN(few, solver=solver, budget=budget).fit(engine)
                found = ranker.rank(7, top=5).scores, ranker.rank(vectors=np.ones((1, 4))).scores
                if not np.isfinite(np.concatenate(found)).all():
                    raise AssertionError("scores that are not finite")

    return test, [bytes(range(start, start + 40)) for start in (0, 40, 80)]


def of_settings(folder):
    """Take any JSON for the settings."""
    path, check = folder / "index", watched(folder)
    known = [state(kind) for kind in KINDS]

    def test(content):
        try:
            settings = json.loads(content[1:])
        except (ValueError, RecursionError):
            return
        arrays = known[content[0] % len(known)][0]
        if isinstance(settings, dict) and written(path, arrays, settings):
            use(path)
        check()

    return test, [
        bytes([number]) + json.dumps(settings).encode()
        for number, (_, settings) in enumerate(known)
    ]


def of_changes(folder):
    """Alter the arrays of a change that waits to be merged."""
    import numpy as np

    from rankfold.errors import InputError, StorageError
    from rankfold.neighbors import DynamicEngine
    from rankfold.storage import Store

    path, whole, check = folder / "index", folder / "index-whole", watched(folder)
    arrays, settings = state("ivf")
    written(whole, arrays, settings)
    planned = DynamicEngine.restore(arrays, settings["engine"]).plan([3], np.ones((2, 4)))
    change = {**planned.arrays(), "places": np.ones((2, 2), dtype=np.float32)}

    def test(content):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(whole, path)
        with Store.open(path, write=True) as store:
            try:
                crafted = altered(content, change)
                store.append(crafted, removed=[3], added_slots=[200, 201], ids=[200, 201])
            except (InputError, StorageError):
                return
        use(path)
        check()

    return test, [bytes(range(start, start + 40)) for start in (0, 40, 80)]


def of_learning(folder):
    """Go on from a stage of learning that is not what was written."""
    from rankfold import Index, datasets
    from rankfold.graph.collective import Stage
    from rankfold.index.build import STAGE, Stages, learning_of

    path = folder / "index"
    with Index.build(datasets.load("rings").X[::8], path=path, n_neighbors=4) as index:
        version = index._backend.version
        with index._backend.current() as engine:
            learning = learning_of(engine, 4, 30.0)
    stages = Stages.of(path, learning, version)
    stages.write(Stage(0, learning.candidates.sq_distances.astype(float), ()))

    def test(content):
        (path / STAGE).write_bytes(content)
        stage = stages.read()
        if stage is not None and not (stage.lifted >= 0).all():
            raise AssertionError("a stage that cannot be")

    return test, [(path / STAGE).read_bytes()]


if __name__ == "__main__":
    inside = parsed()
    if inside.inside:
        os.environ["PYTHONWARNINGS"] = "ignore"
        fuzz(inside.targets[0], Path(inside.inside), inside.seconds, inside.corpus)
    else:
        main()
