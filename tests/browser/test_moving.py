"""How far results moved."""

import pytest

MOONS, DIGITS = "#two-moons?ids=17", "#digits?ids=8"


def ranks(index, query, method):
    ids = index.query(query, top=len(index), method=method).ids
    return {name: place for place, name in enumerate(ids, 1)}


@pytest.mark.parametrize(
    ("link", "query", "name"), [(MOONS, 17, "moons"), (DIGITS, 8, "numerals")], ids=["2d", "64d"]
)
def test_moves_are_those_of_the_library(shown, request, link, query, name):
    index = request.getfixturevalue(name)
    by_distance, by_shape = (ranks(index, query, method) for method in ("distance", "ran"))
    shown.open(link)
    moves = []
    for place, row in enumerate(shown.rows("shape"), 1):
        shift = by_distance[row["id"]] - place
        moves.append("=" if not shift else f"▲ {shift}" if shift > 0 else f"▼ {-shift}")
        words = f"from place {by_distance[row['id']]} by plain distance"
        assert row["says"].endswith(words if shift else "the same place by plain distance")
    assert [row["move"] for row in shown.rows("shape")] == moves
    assert {move[0] for move in moves} >= {"▲", "▼"}
    answer = index.query(query, top=len(index))
    scores = dict(zip(answer.ids, answer.scores, strict=True))
    for row in shown.rows("plain"):
        reached = scores[row["id"]] != 0
        assert row["move"] == (f"→ {by_shape[row['id']]}" if reached else "not reached")


def test_scores_and_distances_are_those_of_the_library(shown, moons):
    shown.open(MOONS)
    by_shape = moons.query(17, top=20).scores
    by_distance = (-moons.query(17, top=20, method="distance").scores) ** 0.5
    for side, expected in (("shape", by_shape), ("plain", by_distance)):
        written = [float(row["score"]) for row in shown.rows(side)]
        assert written == pytest.approx(list(expected), rel=5e-3)
