from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
import zarr
from distributed import Client

from rankfold import Index, datasets
from rankfold.cluster.client import own_cluster
from rankfold.storage import Store

N_SHARDS = 3


@pytest.fixture(scope="session")
def client():
    """A client of two worker processes."""
    with own_cluster(2) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(scope="session")
def X():
    return datasets.load("digits").X[:700].astype(np.float32)


MANY = {"n_neighbors": 3, "recall": 0.95, "layout": "none"}
"""How the index of many points is built."""


@pytest.fixture(scope="session")
def many(tmp_path_factory):
    """Points enough for cells, in a file, and the index that one process builds of them."""
    rng = np.random.default_rng(0)
    sheet = rng.normal(size=(20_500, 3)) @ rng.normal(size=(3, 8))
    X = (sheet + 0.01 * rng.normal(size=sheet.shape)).astype(np.float32)
    folder = tmp_path_factory.mktemp("many")
    np.save(folder / "points.npy", X)
    Index.build(X, path=folder / "whole", **MANY).close()
    return folder


@dataclass(frozen=True)
class Parts:
    """Shards of one kind, and all that they hold."""

    shards: Any
    ids: list[Any] | None = None
    payload: dict[str, list[Any]] = field(default_factory=dict)


def write_npy(folder, X):
    for number, part in enumerate(np.array_split(X, N_SHARDS)):
        np.save(folder / f"part-{number}.npy", part)
    return Parts(folder)


def write_zarr(folder, X):
    array = zarr.create_array(folder / "points.zarr", shape=X.shape, chunks=(500, 20), dtype="f4")
    array[:] = X
    return Parts(folder / "points.zarr")


def write_parquet(folder, X):
    ids = [f"p{row}" for row in range(len(X))]
    payload = {"row": list(range(len(X))), "even": [row % 2 == 0 for row in range(len(X))]}
    for number, rows in enumerate(np.array_split(np.arange(len(X)), N_SHARDS)):
        table = {
            "id": [ids[row] for row in rows],
            "vector": list(X[rows]),
            **{name: [column[row] for row in rows] for name, column in payload.items()},
        }
        pyarrow.parquet.write_table(pyarrow.table(table), folder / f"part-{number}.parquet")
    return Parts(str(folder / "part-*.parquet"), ids, payload)


WRITERS = {"npy": write_npy, "zarr": write_zarr, "parquet": write_parquet}


@pytest.fixture
def shards(tmp_path):
    """Write vectors as shards of a kind."""

    def shards(kind, X):
        folder = tmp_path / kind
        folder.mkdir()
        return WRITERS[kind](folder, X)

    return shards


@pytest.fixture
def whole(tmp_path):
    """Build an index in this process alone, and return its folder."""

    def whole(X, parts, **options):
        Index.build(X, parts.ids, parts.payload, path=tmp_path / "whole", **options).close()
        return tmp_path / "whole"

    return whole


def check_same_index(found: Path, expected: Path) -> None:
    """Require that two indexes hold the same, to the last bit."""
    with Store.open(found) as one, Store.open(expected) as other:
        assert set(one.arrays) == set(other.arrays)
        for name, array in other.arrays.items():
            assert one.arrays[name].dtype == array.dtype, name
            np.testing.assert_array_equal(one.arrays[name], array, name)
        assert one.settings == other.settings
        assert one.columns == other.columns
        slots = np.arange(len(other.arrays["points"]))
        assert one.ids_of(slots) == other.ids_of(slots)
        assert one.payload_of(slots) == other.payload_of(slots)
        one.verify()
