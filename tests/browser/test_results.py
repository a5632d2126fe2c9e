"""The lists of results: how far each moved, and why it has its rank."""

import json

import numpy as np
import pytest
from browser.page_view import lone
from playwright.sync_api import expect

QUERY = 17
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
    by_distance = -moons.query(17, top=20, method="distance").scores
    for side, expected in (("shape", by_shape), ("plain", by_distance)):
        written = [float(row["score"]) for row in shown.rows(side)]
        assert written == pytest.approx(list(expected), rel=5e-3)


def asked_of_the_api(page, query, point):
    return page.evaluate(
        """([query, id]) => fetch('/v1/indexes/two-moons/explain', {
            method: 'POST', headers: {'Content-Type': 'application/json'},
            body: JSON.stringify({query: {ids: [query]}, id}),
        }).then(answer => answer.json())""",
        [query, point],
    )


def explained(shown, point):
    """Wait for the explanation of a point."""
    card = shown["why"]
    expect(card).to_have_attribute("data-about", json.dumps(point))
    expect(shown["why-text"]).to_be_attached()
    return card


def places(shown):
    written = shown["why-places"].locator("b").all_inner_texts()
    return [int(one.replace(",", "")) for one in written]


def steps_to(answer, point):
    """Return how many steps a point is away."""
    path = None if point == QUERY else answer.explain(point).to_dict()["path"]
    return len(path["steps"]) if path else 0


def middle(shown, index, start, end):
    """Return the row and column of the pixel halfway."""
    x, y = np.mean([shown.pixel_of("shape", one, index) for one in (start, end)], axis=0)
    return round(y), round(x)


def is_orange(colours):
    red, green, blue = np.moveaxis(colours, -1, 0)
    return (red > green + 60) & (green >= blue)


@pytest.fixture
def far(moons):
    """Of the points that are listed, the one with the longest path."""
    answer = moons.query(QUERY, top=20)
    return max(answer.ids, key=lambda one: steps_to(answer, one))


@pytest.mark.parametrize("how", ["hover", "focus"])
def test_a_result_is_explained(shown, page, moons, far, how):
    shown.open(f"#two-moons?ids={QUERY}")
    getattr(shown.row("shape", far).locator(".pick"), how)()
    card = explained(shown, far)
    reason = moons.query(QUERY).explain(far)
    known = reason.to_dict()
    assert places(shown) == [known["distance_rank"], known["score_rank"]]
    steps = len(known["path"]["steps"])
    expect(shown["why-path"]).to_contain_text(f"The strongest path has {steps} step")
    card.locator("summary").click()
    page.wait_for_timeout(1000)  # the card stays, though the focus has left the result
    expect(shown["why-text"]).to_have_text(reason.to_text())
    told = asked_of_the_api(page, QUERY, far)
    assert told["text"] == reason.to_text()
    assert told["path"] == known["path"]
    chain = card.locator(".chain span").all_inner_texts()
    assert chain == [str(QUERY), *(str(step["end"]) for step in known["path"]["steps"])]
    moon = moons.payload([far])["moon"][0]
    expect(shown["why-facts"]).to_have_text(f"moon {moon}")
    if how == "focus":
        expect(shown["live"]).to_contain_text(f"{steps} step")


def test_the_path_is_drawn_on_the_map_of_shape_and_a_line_on_the_other(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    answer = moons.query(QUERY, top=len(moons))
    end = max(lone(moons, 15), key=lambda one: steps_to(answer, one))
    steps = answer.explain(end).to_dict()["path"]["steps"]
    assert len(steps) > 8
    x, y = shown.pixel_of("shape", end, moons)
    before = {side: shown.picture(side) for side in ("plain", "shape")}
    shown["map-shape"].hover(position={"x": x, "y": y})
    explained(shown, end)
    after = {side: shown.picture(side, pointed=True) for side in ("plain", "shape")}
    path = [middle(shown, moons, step["start"], step["end"]) for step in steps[1:-1]]
    orange = {side: is_orange(np.array([after[side][at] for at in path])) for side in after}
    assert np.mean(orange["shape"]) > 0.8
    assert np.mean(orange["plain"]) < 0.2
    new = np.any(after["plain"] != before["plain"], axis=-1) & is_orange(after["plain"])
    rows, columns = np.nonzero(new)
    line = np.array([shown.pixel_of("plain", one, moons) for one in (QUERY, end)])
    along, from_start = line[1] - line[0], np.column_stack([columns, rows]) - line[0]
    away = from_start @ [along[1], -along[0]] / np.linalg.norm(along)
    assert len(away) > 50
    assert np.mean(np.abs(away) < 3) > 0.9


def test_what_no_path_leads_to_is_said_so(shown, moons):
    answer = moons.query(QUERY, top=len(moons))
    scores = dict(zip(answer.ids, answer.scores, strict=True))
    point = next(one for one in lone(moons, len(moons)) if scores.get(one) == 0)
    assert answer.explain(point).to_dict()["path"] is None
    shown.open(f"#two-moons?ids={QUERY}")
    x, y = shown.pixel_of("shape", point, moons)
    shown["map-shape"].hover(position={"x": x, "y": y})
    explained(shown, point)
    expect(shown["why-path"]).to_contain_text("No path of neighbours leads from the query")


def test_a_point_of_a_map_is_explained_and_left(shown, page, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    [point] = lone(moons, 1)
    x, y = shown.pixel_of("plain", point, moons)
    shown["map-plain"].hover(position={"x": x, "y": y})
    explained(shown, point)
    known = moons.query(QUERY).explain(point).to_dict()
    assert places(shown) == [known["distance_rank"], known["score_rank"]]
    page.mouse.move(2, 2)
    expect(shown["why"]).to_contain_text("Point at a result")


def test_the_query_itself_says_what_it_is(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}&not=200")
    for point, words in ((QUERY, "is an example of the query"), (200, "not looked for")):
        x, y = shown.pixel_of("plain", point, moons)
        shown["map-plain"].hover(position={"x": x, "y": y})
        expect(shown["why"]).to_contain_text(f"{point} is an example")
        expect(shown["why"]).to_contain_text(words)


def test_escape_leaves_a_result(shown, page):
    shown.open(f"#two-moons?ids={QUERY}")
    shown.row("shape", shown.ids("shape")[0]).locator(".pick").focus()
    explained(shown, shown.ids("shape")[0])
    page.keyboard.press("Escape")
    expect(shown["why"]).to_contain_text("Point at a result")


def test_digits_show_the_pictures_of_the_path(shown, numerals):
    shown.open("#digits?ids=5")
    point = shown.ids("shape")[3]
    shown.reach("shape", point).hover()
    card = explained(shown, point)
    steps = numerals.query(5).explain(point).to_dict()["path"]["steps"]
    expect(card.locator(".chain img")).to_have_count(len(steps) + 1)
    assert card.locator(".chain img").evaluate_all("all => all.map(one => one.alt)") == [
        "5",
        *(str(step["end"]) for step in steps),
    ]


@pytest.mark.parametrize("height", [700, 800, 900])
def test_the_card_leaves_the_result_and_its_marks_free(shown, page, height):
    page.set_viewport_size({"width": 1280, "height": height})
    shown.open()
    boxes = [row.bounding_box() for row in page.locator("#list-shape .result").all()]
    box = [box for box in boxes if box["y"] + box["height"] < height - 60][-1]
    mark = box["x"] + box["width"] - 45, box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 40, mark[1])
    expect(shown["why-text"]).to_be_attached()
    page.mouse.click(*mark)  # where it is, without any scrolling
    expect(page.locator("#list-shape [aria-pressed=true]")).to_have_count(1)


def test_the_card_goes_when_another_query_is_asked(shown, page, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    [point] = lone(moons, 1)
    x, y = shown.pixel_of("plain", point, moons)
    shown["map-plain"].hover(position={"x": x, "y": y})
    explained(shown, point)
    with shown.answered():
        page.evaluate("() => { location.hash = '#two-moons?ids=250'; }")
    expect(shown["why"]).to_contain_text("Point at a result")


def test_one_step_says_whose_neighbour_it_is(shown, moons):
    shown.open(f"#two-moons?ids={QUERY}")
    answer = moons.query(QUERY, top=20)
    near = next(one for one in answer.ids if steps_to(answer, one) == 1)
    shown.row("shape", near).locator(".pick").focus()
    explained(shown, near)
    lists = {one: moons.query(one, method="distance").ids for one in (QUERY, near)}
    there, back = lists[QUERY].index(near) + 1, lists[near].index(QUERY) + 1
    told = f"{near} is number {there} among the nearest of {QUERY}, and {QUERY} number {back} among"
    expect(shown["why-path"]).to_contain_text(f"1 step: {told} those of {near}.")
