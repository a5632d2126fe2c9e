"""Conditions in PostgreSQL, with the same cases as those in SQLite."""

import numpy as np
import pytest
from condition_cases import IDS, PAYLOAD, TREES, expected
from databases.servers import postgresql_address
from databases.tables import settings
from hypothesis import given

from rankfold.databases.contract import NewPoints
from rankfold.databases.postgresql import PostgreSQL
from rankfold.storage.columns import checked_payload, new_columns


@pytest.fixture(scope="module")
def session():
    database = PostgreSQL(postgresql_address())
    checked = checked_payload(PAYLOAD, len(IDS))
    payload = {name: column.values for name, column in checked.items()}
    points = NewPoints(np.arange(len(IDS)), IDS, np.eye(len(IDS), 3), payload, None)
    columns = new_columns(checked)
    with database.create("conditions", settings(), columns, replace=False) as filling:
        filling.add(points, None)
        filling.finish()
    table = database.open("conditions")
    with table.reading() as session:
        yield session
    table.close()
    database.drop("conditions")


@given(TREES)
def test_conditions_mean_what_they_say(session, tree):
    assert session.matching(tree.text).tolist() == expected(tree)


def test_large_whole_numbers_are_not_rounded(session):
    assert session.matching("count > 9223372036854775806.5").tolist() == []
    assert session.matching("count < 9223372036854775808.0 and count > 3").tolist() == [5]
    assert session.matching("price = 10000000000000001 or price > 9007199254740993").tolist() == [4]
    assert session.matching("id >= 1000000000000000000 and id < 1e18").tolist() == []


def test_a_like_knows_no_further_signs(session):
    assert session.matching(r"color like 'a\%b'").tolist() == []
    assert session.matching("color like 'RED'").tolist() == [0, 3]
    assert session.matching("color like 'Ä'").tolist() == []  # as in SQLite


def test_the_largest_conditions_can_be_run(session):
    tests = " or ".join([f"count in ({', '.join(map(str, range(4)))})"] * 200)
    assert session.matching(tests).tolist() == [0, 1, 2, 6, 7, 8]
    deep = "sold or count between 9 and 10 and (" * 11 + "id not in (5, 6)" + ")" * 11
    assert session.matching(deep).tolist() == [0, 3, 6, 7]
