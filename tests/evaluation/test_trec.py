"""Run and qrels files: written for every reader, read with an eye for mistakes."""

import ir_measures
import numpy as np
import pytest
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from ir_measures import AP, nDCG

from rankfold import RAN, Dataset, Distance, InputError, Ranking, Solution
from rankfold.evaluation import (
    evaluate,
    evaluate_runs,
    make_qrels,
    make_run,
    read_qrels,
    read_run,
    write_qrels,
    write_run,
)
from rankfold.metrics import trec_order


def grid_data():
    """Points on a lattice, so that nearly every distance is tied."""
    X = np.array([[x, y] for x in range(6) for y in range(6)], dtype=float)
    return Dataset("lattice", X, (X[:, 0] > 2).astype(np.intp))


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    data, folder = grid_data(), tmp_path_factory.mktemp("trec")
    queries = list(range(36))
    for name, ranker in (("distance", Distance()), ("ran", RAN(n_neighbors=4))):
        rankings = ranker.fit(data.X).rank_many(queries)
        write_run(folder / f"{name}.run", make_run(queries, rankings), tag=name)
    write_qrels(folder / "lattice.qrels", make_qrels(data))
    return folder


def test_round_trip_keeps_the_order_of_ties(files):
    data = grid_data()
    run = read_run(files / "distance.run")
    ranker = Distance().fit(data.X)
    for query in range(36):
        assert [int(point) for point in run[str(query)]] == ranker.rank(query).indices.tolist()
        scores = list(run[str(query)].values())
        np.testing.assert_allclose(scores, ranker.rank(query).scores, rtol=1e-5)
    write_run(files / "again.run", run, tag="distance")
    assert (files / "again.run").read_bytes() == (files / "distance.run").read_bytes()


def test_lines_are_standard(files):
    first = (files / "ran.run").read_text().splitlines()[0].split(" ")
    assert first[:2] + first[3:4] + first[5:] == ["0", "Q0", "1", "ran"]
    assert (files / "lattice.qrels").read_text().startswith("0 0 1 1\n0 0 2 1\n")
    assert read_qrels(files / "lattice.qrels") == make_qrels(grid_data())
    assert {file.suffix for file in files.iterdir()} == {".run", ".qrels"}


def test_ir_measures_reads_the_same_values(files):
    direct = evaluate({"ran": RAN(n_neighbors=4)}, grid_data(), ["average_precision", "ndcg@10"])
    judged = list(ir_measures.read_trec_qrels(str(files / "lattice.qrels")))
    scored = list(ir_measures.read_trec_run(str(files / "ran.run")))
    theirs = ir_measures.calc_aggregate([AP, nDCG @ 10], judged, scored)
    assert direct.mean("ran", "average_precision") == pytest.approx(theirs[AP], abs=1e-12)
    assert direct.mean("ran", "ndcg@10") == pytest.approx(theirs[nDCG @ 10], abs=1e-12)


def test_runs_from_files_give_the_table_of_the_rankers(files):
    runs = {name: read_run(files / f"{name}.run") for name in ("distance", "ran")}
    qrels = read_qrels(files / "lattice.qrels")
    from_files = evaluate_runs(runs, qrels, plain="distance", name="lattice")
    rankers = {"distance": Distance(), "ran": RAN(n_neighbors=4)}
    direct = evaluate(rankers, grid_data(), base="distance")
    assert from_files.to_csv() == direct.to_csv()


def test_query_included():
    qrels = make_qrels(grid_data(), queries=[3], include_query=True)
    assert qrels["3"]["3"] == 1
    assert len(qrels["3"]) == 18


def test_a_query_that_a_run_leaves_out_scores_nothing():
    qrels = {"a": {"x": 1}, "b": {"x": 2, "y": 0}, "c": {"x": 0}}
    runs = {"full": {"a": {"x": 1.0}, "b": {"x": 1.0}}, "half": {"b": {"x": 1.0}}}
    found = evaluate_runs(runs, qrels, "reciprocal_rank", plain="full")
    assert found.queries == ("a", "b")
    assert found.values["half"]["reciprocal_rank"].tolist() == [0.0, 1.0]
    assert [row.harm for row in found.table()] == [0.0, 0.5]


FINITE = st.floats(allow_nan=False, allow_infinity=False)


@examples(100)
@given(st.lists(st.one_of(FINITE, st.sampled_from([0.0, -0.0, 1.0, -1e-45])), max_size=30))
def test_scores_fall_strictly_for_every_reader(scores):
    falling = np.sort(np.array(scores))[::-1]
    ids = np.random.default_rng(len(scores)).permutation(len(scores))
    ranking = Ranking(Solution(ids, falling, 0.0))
    results = make_run([7], [ranking])["7"]
    single = np.array(list(results.values()), dtype=np.float32)
    assert (single[1:] < single[:-1]).all()
    assert np.isfinite(single).all()
    order = trec_order(list(results), list(results.values()))
    assert order.tolist() == list(range(len(scores)))


BAD_FILES = {
    "five words": (read_run, "1 Q0 2 1 0.5\n", "line 1: has 5 words, but must have 6: query Q0"),
    "score": (read_run, "1 Q0 2 1 0.5 t\n1 Q0 3 2 high t\n", "line 2: the score is 'high'"),
    "nan": (read_run, "\n1 Q0 2 1 nan t\n", "line 2: the score is 'nan', but must be a finite"),
    "twice": (read_run, "1 Q0 2 1 0.5 t\n1 Q0 2 2 0.4 t\n", "line 2: point '2' stands twice"),
    "empty": (read_run, "\n", "is empty; expected lines of query Q0 point rank score tag"),
    "qrels words": (read_qrels, "1 0 2 1 9\n", "line 1: has 5 words, but must have 4: query 0"),
    "grade": (read_qrels, "1 0 2 0.5\n", "the grade is '0.5', but must be a whole number"),
    "qrels twice": (read_qrels, "1 0 2 1\n1 0 2 0\n", "line 2: point '2' stands twice"),
}


@pytest.mark.parametrize(("read", "text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files(tmp_path, read, text, message):
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read(path)


def test_not_a_text_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1 Q0 \xff\xfe 1 0.5 t\n")
    with pytest.raises(InputError, match="not a text file in UTF-8"):
        read_run(path)
    with pytest.raises(FileNotFoundError):
        read_run(tmp_path / "missing")


def test_a_failed_write_leaves_the_old_file(tmp_path):
    path = tmp_path / "file.run"
    write_run(path, {"1": {"2": 0.5}})
    before = path.read_text()
    with pytest.raises(InputError, match="without any"):
        write_run(path, {"1": {"2": 0.5}, "a query": {"3": 0.1}})
    with pytest.raises(ValueError, match="could not convert"):
        write_run(path, {"1": {"2": "high"}})
    with pytest.raises(InputError, match="tag holds ''"):
        write_run(path, {"1": {"2": 0.5}}, tag="")
    with pytest.raises(InputError, match="qrels holds 3"):
        write_qrels(path, {"1": {3: 1}})
    assert path.read_text() == before
    assert [file.name for file in tmp_path.iterdir()] == ["file.run"]


RUN, QRELS = {"1": {"2": 0.5}}, {"1": {"2": 1}}
BAD_RUNS = {
    "no runs": ({"runs": {}}, "runs is {}"),
    "plain": ({"plain": "distance"}, "plain is 'distance', but must be one of 'run'"),
    "base": ({"base": "other"}, "base is 'other'"),
    "nothing relevant": ({"qrels": {"1": {"2": 0}}}, "qrels holds no grade above zero"),
    "other queries": ({"qrels": {"9": {"2": 1}}}, "answers none of the queries of qrels"),
    "metric": ({"metrics": ["map"]}, "metric 'map' is not known"),
}


@pytest.mark.parametrize(("change", "message"), BAD_RUNS.values(), ids=BAD_RUNS)
def test_bad_runs(change, message):
    with pytest.raises(InputError, match=message):
        evaluate_runs(**{"runs": {"run": RUN}, "qrels": QRELS, "plain": "run", **change})


def test_a_byte_order_mark_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "qrels"
    path.write_bytes(b"\xef\xbb\xbf1 0 a 1\n1 0 b 1\n")
    assert read_qrels(path) == {"1": {"a": 1, "b": 1}}


def test_scores_must_be_finite(tmp_path):
    with pytest.raises(InputError, match="NaN or infinite"):
        write_run(tmp_path / "run", {"1": {"a": float("nan")}})
    assert not (tmp_path / "run").exists()
