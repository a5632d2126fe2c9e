"""``rankfold evaluate`` on the command line."""

import csv
import json
from io import StringIO

import numpy as np
import pytest
from click.testing import CliRunner

from rankfold import RAN, RANKERS, Dataset, Distance, Index, datasets
from rankfold.cli import main
from rankfold.evaluation import SearchCollection, evaluate, write_qrels
from rankfold.evaluation.measures import DEFAULTS

QUICK = ["--methods", "ran,distance", "--sample", "20", "--metrics", "r_precision,ndcg@5"]


def call(*words):
    return CliRunner().invoke(main, ["evaluate", *words])


def test_metrics_are_those_of_the_library():
    rows = json.loads(call("moons", "--sample", "5", "--format", "json").stdout)
    assert [row["metric"] for row in rows[::2]] == list(DEFAULTS)
    assert [row["method"] for row in rows[:2]] == ["distance", "ran"]


def test_json_rows():
    result = call("moons", *QUICK, "--format", "json")
    assert result.exit_code == 0
    assert result.stderr == ""
    rows = json.loads(result.stdout)
    assert [(row["method"], row["metric"]) for row in rows] == [
        ("ran", "r_precision"),
        ("distance", "r_precision"),
        ("ran", "ndcg@5"),
        ("distance", "ndcg@5"),
    ]
    assert {tuple(row) for row in rows} == {
        ("dataset", "method", "metric", "mean", "low", "high", "harm")
    }
    found = evaluate({"e": Distance()}, datasets.load("moons"), "r_precision", queries=20)
    assert rows[1]["mean"] == found.mean("e", "r_precision")


@pytest.mark.parametrize(
    ("form", "start"),
    [
        ("table", "moons, "),
        ("markdown", "| dataset | metric | method |"),
        ("latex", "% ran is "),
        ("csv", "dataset,method,metric,n_queries,mean,low,high,harm,p_value"),
    ],
)
def test_formats(form, start):
    result = call("moons", *QUICK, "--format", form)
    assert result.exit_code == 0
    assert result.stdout.startswith(start)
    assert "distance" in result.stdout


def test_all_methods():
    result = call(
        "moons", "--methods", "all", "--sample", "5", "--format", "csv", "--metrics", "precision@5"
    )
    assert result.exit_code == 0
    rows = csv.DictReader(StringIO(result.stdout))
    assert [row["method"] for row in rows] == list(RANKERS)


def test_all_methods_are_those_that_can_use_the_data(folder):
    options = ["--methods", "all", "--sample", "5", "--metrics", "r_precision", "--format", "csv"]
    result = call("yale", *options, "--folder", str(folder))
    methods = [row["method"] for row in csv.DictReader(StringIO(result.stdout))]
    assert methods == [name for name in RANKERS if name != "query_expansion"]


def test_options_reach_the_evaluation():
    options = ["--base", "distance", "--include-query", "--seed", "3", "--jobs", "1"]
    result = call("moons", *QUICK, *options, "--format", "csv")
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert [row["p_value"] == "" for row in rows] == [False, True, False, True]
    assert {row["n_queries"] for row in rows} == {"20"}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["cats"], 2, "name is 'cats', but must be one of"),
        (["moons", "--methods", "ran,runn"], 2, "method 'runn' is not known; choose from all, di"),
        (["moons", "--methods", ""], 2, "method '' is not known"),
        (["moons", "--metrics", "map"], 2, "metric 'map' is not known"),
        (["moons", "--methods", "ran", "--base", "lcdp"], 2, "base is 'lcdp'"),
        (["moons", "--sample", "0"], 2, "'0' is neither a whole number from 1 nor 'all'"),
        (["moons", "--sample", "many"], 2, "'many' is neither"),
        (["moons", "--sample", "401"], 1, "queries is 401, but only 400 points"),
        (["moons", "--format", "pdf"], 2, "'pdf' is not one of"),
        (["moons", "--jobs", "0"], 2, "--jobs is 0"),
        (["moons", "--seed", "-1"], 2, "seed is -1"),
        (["yale", "--folder", "nowhere"], 1, "yale_diff.mat is not in 'nowhere'"),
        ([], 2, "Missing argument 'DATA'"),
    ],
)
def test_bad_words(words, status, message):
    result = call(*words)
    assert result.exit_code == status
    assert result.stdout == ""
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_interrupt(monkeypatch):
    answer, blocks = RANKERS["ran"].rank_many, []

    def stop(self, queries, **options):
        blocks.append(queries)
        if len(blocks) > 1:
            raise KeyboardInterrupt
        return answer(self, queries, **options)

    monkeypatch.setattr(RANKERS["ran"], "rank_many", stop)
    result = call("moons", "--methods", "distance,ran", "--sample", "100", "--format", "csv")
    assert result.exit_code == 130
    rows = list(csv.DictReader(StringIO(result.stdout)))
    assert [row["method"] for row in rows] == ["distance", "ran"] * 3
    assert {row["n_queries"] for row in rows} == {"64"}
    assert result.stderr.startswith("Stopped early")


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Two moons in files of several kinds and in an index, with some labels missing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("RANKFOLD_ENGINE", raising=False)
    moons = datasets.load("moons")
    names = [f"p{row}" for row in range(400)]
    kinds = [None if row % 10 == 9 else int(label) for row, label in enumerate(moons.labels)]
    np.save("moons.npy", moons.X)
    np.savez("moons.npz", vectors=moons.X, ids=names, moon=moons.labels)
    cells = zip(names, moons.X.tolist(), moons.labels, kinds, strict=True)
    whole, some = ["id,x,y,moon"], ["id,moon"]
    for name, (x, y), label, kind in cells:
        whole.append(f"{name},{x!r},{y!r},{label}")
        some.append(f"{name},{'' if kind is None else kind}")
    (tmp_path / "moons.csv").write_text("\n".join(whole))
    (tmp_path / "kinds.csv").write_text("\n".join(some))
    Index.build(moons.X, names, {"moon": kinds}, path="index", n_neighbors=7).close()
    return tmp_path


def rows_of(*words):
    result = call(*words, "--format", "csv")
    assert result.exit_code == 0, result.output
    return list(csv.DictReader(StringIO(result.stdout)))


METRICS = ["--metrics", "precision@50,r_precision"]


def test_an_index_by_a_label(written, monkeypatch):
    rows = rows_of("index", "--label", "moon", *METRICS)
    assert {row["dataset"] for row in rows} == {"index"}
    assert {row["n_queries"] for row in rows} == {"360"}
    with Index.open("index") as index:
        labels = dict(zip(index.ids, index.payload(index.ids)["moon"], strict=True))
        for row in rows[:2]:
            right = [
                np.mean([labels[p] == labels[query] for p in
                         index.query(query, top=50, method=row["method"])])
                for query in ("p0", "p123", "p398")
            ]  # fmt: skip
            found = index.evaluate(
                "moon", metrics="precision@50", queries=["p0", "p123", "p398"],
                methods=[row["method"]],
            )  # fmt: skip
            assert found.queries == ("p0", "p123", "p398")
            np.testing.assert_allclose(found.values[row["method"]]["precision@50"], right)
    text = call("index", "--label", "moon", "--sample", "50").stdout
    assert "neither queries nor relevant: 40." in text
    assert "ran is better than plain distance" in text

    def search(*_args, **_options):
        raise AssertionError("lists were searched anew")

    for name in ("neighbors.exact.ExactEngine.rows", "rankers.base.choose_engine"):
        monkeypatch.setattr(f"rankfold.{name}", search)
    assert rows_of("index", "--label", "moon", *METRICS) == rows


def test_an_index_with_removed_points(written):
    with Index.open("index", write=True) as index:
        index.remove([f"p{row}" for row in range(0, 400, 4)])
        index.add([[0.0, 0.0]], ["new"], {"moon": [None]})
    rows = rows_of("index", "--label", "moon", *METRICS)
    labels = datasets.load("moons").labels
    kept = [row for row in range(400) if row % 4]
    assert {row["n_queries"] for row in rows} == {str(sum(row % 10 != 9 for row in kept))}
    X = np.r_[datasets.load("moons").X[kept], [[0.0, 0.0]]]
    kinds = [None if row % 10 == 9 else labels[row] for row in kept]
    data = Dataset("index", X, np.array([*kinds, None], dtype=object))
    expected = evaluate({"distance": Distance(), "ran": RAN(7)}, data, METRICS[1].split(","))
    assert [float(row["mean"]) for row in rows] == pytest.approx(
        [row.mean for row in expected.table()]
    )


def test_files_by_a_label(written):
    expected = evaluate(
        {"distance": Distance(), "ran": RAN()}, datasets.load("moons"), METRICS[1].split(",")
    )
    for file in ("moons.npz", "moons.csv"):
        rows = rows_of(file, "--label", "moon", *METRICS)
        assert [float(row["mean"]) for row in rows] == [row.mean for row in expected.table()]
    rows = rows_of("moons.npy", "--payload", "kinds.csv", "--label", "moon", *METRICS)
    assert {row["n_queries"] for row in rows} == {"360"}


@pytest.fixture
def asked(written):
    """Questions with judgements, and the collection that they make."""
    rng = np.random.default_rng(0)
    moons = datasets.load("moons")
    rows = rng.choice(400, 30, replace=False)
    vectors = moons.X[rows] + 0.01 * rng.normal(size=(30, 2))
    names = [f"q{row}" for row in range(30)]
    alike = moons.labels[rows][:, None] == moons.labels
    qrels = {
        query: {f"p{row}": int(rng.integers(3)) for row in np.flatnonzero(alike[place])[::3]}
        for place, query in enumerate(names)
    }
    qrels["q3"] = {"p1": 0}
    np.savez("asked.npz", vectors=vectors, ids=names)
    np.save("asked.npy", vectors)
    (written / "names.txt").write_text("\n".join(names))
    write_qrels("judged.qrels", qrels)
    ids = [f"p{row}" for row in range(400)]
    return SearchCollection("moons", moons.X, vectors, qrels, "euclidean", ids, names)


def test_search_in_files(asked):
    expected = evaluate({"distance": Distance(), "ran": RAN()}, asked)
    rows = rows_of("moons.npz", "--queries", "asked.npz", "--qrels", "judged.qrels")
    assert [row["metric"] for row in rows[::2]] == ["ndcg@10", "average_precision", "recall@100"]
    assert [float(row["mean"]) for row in rows] == [row.mean for row in expected.table()]
    assert {row["n_queries"] for row in rows} == {"29"}
    again = rows_of(
        "moons.csv", "--vector-columns", "x,y", "--queries", "asked.npy", "--query-ids",
        "names.txt", "--qrels", "judged.qrels",
    )  # fmt: skip
    assert again == rows
    text = call("moons.npz", "--queries", "asked.npz", "--qrels", "judged.qrels").stdout
    assert "Queries left out because no document is relevant to them: 1." in text


def test_search_in_an_index(asked):
    rows = rows_of("index", "--queries", "asked.npz", "--qrels", "judged.qrels")
    expected = evaluate({"distance": Distance(), "ran": RAN(7)}, asked)
    assert [float(row["mean"]) for row in rows] == pytest.approx(
        [row.mean for row in expected.table()]
    )
    assert {row["n_queries"] for row in rows} == {"29"}


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        (["index"], 2, "'index' is a file or a folder: give --label COLUMN, or --queries FILE"),
        (["moons.npz"], 2, "'moons.npz' is a file or a folder"),
        (["index", "--label", "sun"], 2, "label is 'sun', but the columns of the payload are"),
        (["moons.npz", "--label", "sun"], 2, "--label is 'sun', but the columns beside the vect"),
        (["moons.csv", "--label", "sun"], 2, "has no column 'sun'"),
        (["moons.npz", "--queries", "asked.npz"], 2, "--queries and --qrels belong together"),
        (["index", "--label", "moon", "--queries", "a", "--qrels", "b"], 2, "only one can say"),
        (["index", "--label", "moon", "--query-ids", "a"], 2, "--query-ids are those of --que"),
        (["index", "--label", "moon", "--metric", "cosine"], 2, "--metric is for files and data"),
        (["index", "--label", "moon", "--jobs", "2"], 2, "--jobs is for files and data sets"),
        (["none.npy", "--label", "moon"], 1, "there is no file 'none.npy'"),
        (["moons.npz", "--queries", "none.npy", "--qrels", "judged.qrels"], 1, "no file 'none.np"),
        (["moons.npz", "--queries", "asked.npz", "--qrels", "none"], 1, "no file 'none'"),
        (["index", "--queries", "narrow.npy", "--qrels", "judged.qrels"], 1, "3 numbers, but"),
        (["moons.npy", "--queries", "asked.npz", "--qrels", "judged.qrels"], 1, "none of the rel"),
        (["moons.npz", "--queries", "asked.npy", "--qrels", "judged.qrels"], 1, "no query of 'm"),
    ],
)
def test_bad_words_about_own_data(asked, words, status, message):
    np.save("narrow.npy", np.ones((2, 3)))
    result = call(*words)
    assert message in result.stderr
    assert result.exit_code == status
    assert result.stdout == ""
    assert "Traceback" not in result.stderr
