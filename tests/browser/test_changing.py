"""Indexes that change while the page shows them."""

import numpy as np
import pytest
from playwright.sync_api import expect
from running_service import running

from rankfold import Index
from rankfold.service.app import create_app

PARITY, HALF = ["even", "odd"], ["first", "second"]


@pytest.fixture
def changing():
    """A wave of points that are even or odd, and of the first or the second half."""
    X = np.column_stack([np.arange(40.0), 4 * np.sin(np.arange(40) / 6)])
    payload = {"parity": PARITY * 20, "half": [half for half in HALF for _ in range(20)]}
    with Index.build(X, payload=payload, n_neighbors=3) as index:
        yield index


@pytest.fixture
def address(changing):
    with running(create_app({"changing": changing})) as client:
        yield str(client.base_url)


def sharing(index, query, column, answer):
    """Return how many results have the value of the query."""
    values = index.payload([query, *answer], [column])[column]
    return sum(value == values[0] for value in values[1:])


def test_another_column_belongs_to_the_points_of_now(shown, changing):
    shown.open("#changing?ids=30")
    changing.remove(list(range(0, 20, 2)))
    with shown.answered():
        shown["judge"].select_option("half")
    answer = changing.query(30, top=20).ids
    same = sharing(changing, 30, "half", answer)
    assert shown.ids("shape") == answer
    expect(shown["judged-shape"]).to_contain_text(f"{same} of 20")
    expect(shown["lead"]).to_contain_text("the same 30 points")


def test_points_that_came_are_drawn(shown, page, changing):
    shown.open("#changing?ids=39")
    changing.add([[40.0, 1.5]], ids=[40], payload={"parity": ["even"], "half": ["second"]})
    with shown.answered():
        shown["slider-k"].focus()
        page.keyboard.press("ArrowRight")
    assert 40 in shown.ids("shape")
    expect(shown["lead"]).to_contain_text("the same 41 points")
    shown.click("plain", shown.pixel_of("plain", 40, changing))
    assert shown.query() == ["40"]


def test_points_that_went_leave_the_map(shown, watch, changing):
    shown.open("#changing?ids=39")
    changing.remove([0])
    shown["ask-id"].fill("0")
    shown["ask"].click()
    expect(shown["lead"]).to_contain_text("the same 39 points")
    watch.expect("status of 422")


def test_the_column_chosen_last_is_shown(shown, page, changing):
    shown.open("#changing?ids=30&judge=")
    held = []
    page.route("**/map*column=half", lambda route: held.append(route))
    shown["judge"].select_option("half")
    while not held:
        page.wait_for_timeout(10)
    shown["judge"].select_option("parity")
    same = sharing(changing, 30, "parity", shown.ids("shape"))
    expect(shown["judged-shape"]).to_contain_text(f"{same} of 20 share parity")
    with page.expect_response("**/map*column=half"):
        held[0].continue_()
    page.wait_for_timeout(200)
    expect(shown["judged-shape"]).to_contain_text(f"{same} of 20 share parity")
    expect(shown["judge"]).to_have_value("parity")
