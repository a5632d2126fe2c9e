"""The page over an index in a database."""

import pytest
from browser.showing import chroma
from databases.servers import postgresql
from playwright.sync_api import expect
from serving import serving

from rankfold import Index

NAME = "pictured"


@pytest.fixture(scope="module")
def engine():
    """Return the address of a database that is gone afterwards."""
    server = postgresql()
    server.run("CREATE DATABASE page")
    yield server.address("page")
    server.run("DROP DATABASE page WITH (FORCE)")


@pytest.fixture(scope="module")
def table(engine, digits):
    """Copy digits there; return the index, to be changed beside the service."""
    with Index.open(digits) as folder:
        folder.copy(NAME, engine=engine)
    with Index.open(NAME, write=True, engine=engine) as index:
        yield index


@pytest.fixture(scope="module")
def shared(engine, table):
    with serving(NAME, "--engine", engine) as service:
        yield service


@pytest.fixture
def address(shared):
    return shared.address


def test_maps_lists_and_pictures_are_those_of_the_folder(shown, page, table, numerals):
    shown.open(f"#{NAME}?ids=170")
    for side, method in (("plain", "euclidean"), ("shape", "ran")):
        assert shown.ids(side) == numerals.query(170, top=20, method=method).ids
        assert chroma(shown.colours(side, [170], table))[0] > 30
    expect(page.locator("#list-shape img")).to_have_count(20)
    expect(shown["lead"]).to_contain_text(f"the same {len(table):,} points")


def test_the_card_says_why(shown, numerals):
    shown.open(f"#{NAME}?ids=170")
    point = shown.ids("shape")[3]
    shown.row("shape", point).locator(".pick").focus()
    known = numerals.query(170).explain(point).to_dict()
    expect(shown["why"]).to_have_attribute("data-about", str(point))
    places = shown["why-places"].locator("b")
    expect(places).to_have_text([f"{known[rank]:,}" for rank in ("distance_rank", "score_rank")])
    expect(shown["why-path"]).to_contain_text(f"has {len(known['path']['steps'])} step")


def test_only_one_alternation_is_offered(shown, table):
    shown.open(f"#{NAME}?ids=170")
    expect(shown["slider-alternations"]).to_be_disabled()
    most = table.info()["list_width"] - 1
    expect(shown["slider-k"]).to_have_attribute("max", str(most))
    with shown.answered():
        shown["slider-k"].press("End")
    assert shown.ids("shape") == table.query(170, top=20, n_neighbors=most).ids


def test_points_that_another_process_adds_are_drawn(shown, table):
    shown.open(f"#{NAME}?ids=170")
    before = len(table)
    (new,) = table.add(table.vectors([170]) + 0.5, ids=[9000], payload={"digit": [8]})
    with shown.answered():
        shown["slider-smoothness"].press("ArrowRight")
    assert new in shown.ids("shape")
    expect(shown["lead"]).to_contain_text(f"the same {before + 1:,} points")
    table.remove([new])
