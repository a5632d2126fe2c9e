"""Damage in a table is found: a real PostgreSQL whose tables are changed by hand."""

import pytest

from rankfold.check import StorageError
from rankfold.databases.checking import verify

DAMAGE = {
    "a point deleted": ("DELETE FROM rankfold_{0}_points WHERE slot = 3", "19 points, but"),
    "a count": ("UPDATE rankfold_tables SET n_alive = n_alive + 1", "but the head says 21"),
    "too few slots": ("UPDATE rankfold_tables SET n_points = 5", "beyond the 5 slots"),
    "a list deleted": ("DELETE FROM rankfold_{0}_lists WHERE slot = 3", "without a list"),
    "sources forgotten": (
        "UPDATE rankfold_{0}_lists SET sources = '{{}}' WHERE slot = 3",
        "do not know that they are listed",
    ),
    "sources of others": (
        "UPDATE rankfold_{0}_lists SET sources = sources[2:] || 19 WHERE slot = 3",
        "do not know that they are listed",
    ),
    "a list of another": (
        "UPDATE rankfold_{0}_lists SET lists = (SELECT lists FROM rankfold_{0}_lists WHERE "
        "slot = 4) WHERE slot = 3",
        "damaged",
    ),
    "a place": ("UPDATE rankfold_{0}_points SET x = 'NaN' WHERE slot = 3", "without a place"),
}


def test_what_is_whole_passes(filled):
    open_table, _, _ = filled
    verify(open_table())


@pytest.mark.parametrize("case", DAMAGE)
def test_damage_is_found(filled, server, fresh, case):
    open_table, _, _ = filled
    sql, message = DAMAGE[case]
    ((number,),) = server.run("SELECT number FROM rankfold_tables", fresh)
    server.run(sql.format(number), fresh)
    with pytest.raises(StorageError, match=message):
        verify(open_table())
