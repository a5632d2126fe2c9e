"""Several calls see one state."""

import numpy as np
import pytest
from index_cases import payload, vectors

from rankfold import Index
from rankfold.errors import InputError


@pytest.fixture
def path(tmp_path):
    rng = np.random.default_rng(0)
    Index.build(vectors(rng, 30), payload=payload(rng, 30), path=tmp_path / "i").close()
    return tmp_path / "i"


def told(index):
    """Return what each way of asking says."""
    ids, places = index.places()
    results = index.query(1, top=30)
    return {
        "info": index.info(),
        "ids": index.ids,
        "places": (ids, places.tolist()),
        "vectors": index.vectors(ids).tolist(),
        "payload": index.payload(ids),
        "query": (results.ids, results.scores.tolist(), results.payload),
        "condition": index.query(1, where="price < 50").ids,
        "reason": results.explain(2).to_dict(),
        "length": len(index),
        "contained": [point in index for point in range(31)],
    }


@pytest.mark.parametrize("layout", ["pca", "none"])
def test_all_that_is_read_in_a_block_belongs_to_one_state(path, layout):
    with Index.open(path, write=True) as writer, Index.open(path) as reader:
        writer.lay_out(layout)
        expected = told(reader)
        with reader.reading():
            assert told(reader) == expected
            writer.remove([3, 4])
            writer.add(vectors(np.random.default_rng(1), 1), [30])
            writer.update(5, payload={"price": [7]})
            assert told(reader) == expected
            writer.save()  # merges
            assert told(reader) == expected
        assert told(reader) == told(writer) != expected


def test_nothing_can_be_changed_in_a_block_that_reads(path):
    with Index.open(path, write=True) as index:
        with index.reading(), pytest.raises(InputError, match="while the same thread reads"):
            index.remove(3)
        index.remove(3)
        assert len(index) == 29
