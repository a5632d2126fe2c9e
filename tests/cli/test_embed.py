"""``rankfold embed``."""

import numpy as np
import pytest
from pyarrow import parquet

from rankfold import Index
from rankfold.datasets.synthetic import rings


def test_vectors_are_written_in_the_order_of_ids(call, index, tmp_path):
    result = call("embed", index, "-o", "shape.npy", "--components", 32)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout == "shape.npy: 400 vectors of 32 numbers\n"
    with Index.open(tmp_path / index) as opened:
        ids, expected = opened.embed(32)
    np.testing.assert_array_equal(np.load("shape.npy", allow_pickle=False), expected)
    assert call("embed", index, "-o", "shape.parquet", "--components", 32).exit_code == 0
    table = parquet.read_table("shape.parquet")
    assert table.column("id").to_pylist() == [str(name) for name in ids]  # of mixed types
    np.testing.assert_array_equal(np.array(table.column("shape").to_pylist()), expected)


def test_parameters_count(call, index):
    call("embed", index, "-o", "unit.npy", "--components", 8, "--normalization", 1)
    np.testing.assert_allclose(np.linalg.norm(np.load("unit.npy"), axis=1), 1, rtol=1e-5)


def test_removed_points_and_learned_graphs():
    with Index.build(rings().X) as opened:
        plain = opened.embed(16)[1]
        assert opened.learn().n_rounds
        learned = opened.embed(16)[1]
        opened.remove(opened.ids[:3])
        fewer = opened.embed(16)[1]
    assert not np.array_equal(plain, learned)
    assert len(fewer) == 357
    assert (np.linalg.norm(fewer, axis=1) > 0).all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-o", "shape.txt"), "neither an .npy nor a .parquet file"),
        (("-o", "s.npy", "--components", 0), "--components is 0"),
    ],
)
def test_what_cannot_be(call, index, tmp_path, words, message):
    result = call("embed", index, *words)
    assert result.exit_code in (1, 2)
    assert message in result.stderr
    assert not list(tmp_path.glob("s*.npy"))
