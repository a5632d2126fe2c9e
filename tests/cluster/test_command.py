import numpy as np
from click.testing import CliRunner

from rankfold import Index
from rankfold.cli import main


def call(*words):
    return CliRunner().invoke(main, ["cluster", *map(str, words)])


def test_build_and_rank(client, X, shards, tmp_path):
    where = ("--scheduler", client.scheduler.address)
    parts = shards("parquet", X[:200])
    name = tmp_path / "made"
    columns = ("--payload-columns", "row", "--neighbors", "5", "--layout", "none")
    built = call("build", *sorted((tmp_path / "parquet").iterdir()), "-o", name, *where, *columns)
    assert built.output == (
        f"{name}: 200 points, 64 features, 1 column (row), euclidean, 5 neighbours, no map, "
        "recall 1\n"
    )
    (tmp_path / "ids.txt").write_text("p3\np5\n")
    np.save(tmp_path / "vectors.npy", X[[7]])
    asked = ("--ids", tmp_path / "ids.txt", "--vectors", tmp_path / "vectors.npy", "--top", 4)
    ranked = call("rank", name, *asked, "-o", tmp_path / "found.npz", *where)
    assert ranked.output == f"{tmp_path / 'found.npz'}: 3 rankings\n"
    with np.load(tmp_path / "found.npz") as found, Index.open(name) as index:
        expected = [index.query(one, top=4) for one in ("p3", "p5")]
        expected.append(index.query(vectors=X[7], top=4))
        assert found["id"].tolist() == [one for results in expected for one in results]
    assert parts.ids[3] == "p3"


def test_errors_are_one_line(client, shards, X, tmp_path):
    where = ("--scheduler", client.scheduler.address)
    shards("npy", X[:20])
    wrong = call("build", tmp_path / "nothing.npy", "-o", tmp_path / "made", *where)
    assert wrong.exit_code == 1
    assert wrong.output.startswith("Error: there is no file")
    twice = call("build", tmp_path / "npy", "-o", tmp_path / "made", *where, "--workers", "2")
    assert twice.output.startswith("Error: --workers is given together with")
    lacking = call("rank", tmp_path / "made", "-o", tmp_path / "found.npz")
    assert (lacking.exit_code, "--ids" in lacking.output) == (2, True)
    other = call("rank", tmp_path / "made", "--ids", "x", "-o", tmp_path / "found.csv")
    assert "ends in '.csv'" in other.output
