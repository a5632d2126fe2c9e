"""A learned graph stays behind when an index is copied into a database."""

import pytest

from rankfold import Index, InputError
from rankfold.datasets.synthetic import rings


def test_a_learned_graph_stays_behind(database, name, tmp_path):
    X = rings().X.astype("float32")
    with Index.build(X, path=tmp_path / "folder") as index:
        plain = index.query(3, top=30)
        index.learn()
        assert index.query(3, top=30).ids != plain.ids
        index.copy(name, engine=database)
    with Index.open(name, write=True, engine=database) as table:
        assert table.info()["learned"] is None
        assert table.query(3, top=30).ids == plain.ids
        for act in (table.learn, table.unlearn):
            with pytest.raises(InputError, match="is for an index in a folder, but it is in a"):
                act()
        with pytest.raises(InputError, match="they are in a database"):
            table.query(3, adapt="collective")
        table.copy(tmp_path / "back")
    with Index.open(tmp_path / "back", write=True) as back:
        assert back.info()["learned"] is None
        assert back.learn().n_rounds
