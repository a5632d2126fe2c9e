"""A server that asks for a key."""

import pytest
from playwright.sync_api import expect
from running_service import KEY, running

from rankfold.service import Settings
from rankfold.service.app import create_app


@pytest.fixture(scope="module")
def locked():
    with running(create_app({}, Settings(api_key=KEY))) as client:
        yield str(client.base_url)


@pytest.fixture
def address(locked):
    return locked


def test_the_page_asks_for_the_key(shown, page, watch, moons):
    page.goto("/#two-moons?ids=17")
    expect(shown["key-dialog"]).to_be_visible()
    expect(shown["key"]).to_be_focused()
    expect(shown["key-error"]).to_have_text("")
    page.keyboard.type("not-the-key-of-this-server\n")
    expect(shown["key-error"]).to_have_text("The server does not accept this key.")
    expect(shown["key-dialog"]).to_be_visible()
    watch.expect("status of 401")
    shown["key"].fill(KEY)
    with shown.answered():
        shown["key-send"].click()
    expect(shown["key-dialog"]).to_be_hidden()
    expect(shown["notice"]).to_be_hidden()
    assert shown.ids("shape") == moons.query(17, top=20).ids
    assert KEY not in page.content()
    assert KEY not in page.url
    page.reload()
    shown.wait(0)  # the key is kept as long as the tab is open
    assert shown.ids("shape") == moons.query(17, top=20).ids


def test_without_a_key_nothing_is_shown_and_it_can_be_given_later(shown, page, watch):
    page.goto("/")
    expect(shown["key-dialog"]).to_be_visible()
    page.keyboard.press("Escape")
    expect(shown["key-dialog"]).to_be_hidden()
    expect(shown["notice-text"]).to_have_text("This server asks for an API key.")
    expect(shown["tab"]).to_have_count(0)
    shown["notice-action"].click()
    shown["key"].fill(KEY)
    with shown.answered():
        page.keyboard.press("Enter")
    expect(shown["tab"]).to_have_count(2)
    watch.expect("status of 401")


def test_a_key_that_cannot_be_sent_is_refused_and_can_be_mended(shown, page, watch):
    page.goto("/")
    shown["key"].fill(f"“{KEY}”")
    shown["key-send"].click()
    expect(shown["key-error"]).to_contain_text("a character that no key can have")
    expect(shown["key-dialog"]).to_be_visible()
    assert page.evaluate("() => sessionStorage.length") == 0
    shown["key"].fill(KEY)
    with shown.answered():
        shown["key-send"].click()
    watch.expect("status of 401")
