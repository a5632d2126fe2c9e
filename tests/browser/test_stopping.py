"""A server that stops, and comes back."""

import pytest
from playwright.sync_api import expect
from running_service import running

from rankfold.service.app import create_app


class Stoppable:
    """A service that comes back where it was."""

    def __init__(self):
        self.port = 0
        self.start()

    def start(self):
        self._running = running(create_app({}), self.port)
        url = self._running.__enter__().base_url
        self.port, self.address = url.port, f"http://{url.host}:{url.port}"

    def stop(self):
        self._running.__exit__(None, None, None)


@pytest.fixture
def stoppable():
    service = Stoppable()
    yield service
    service.stop()


@pytest.fixture
def address(stoppable):
    return stoppable.address


def test_the_page_keeps_what_it_shows_until_the_server_is_back(shown, watch, moons, stoppable):
    shown.open("#two-moons?ids=17")
    before = shown.ids("shape")
    stoppable.stop()
    shown["ask-id"].fill("3")
    shown["ask"].click()
    expect(shown["notice-text"]).to_have_text("The server does not answer. What you see stays.")
    assert shown.ids("shape") == before
    shown["notice-action"].click()
    expect(shown["notice"]).to_be_visible()
    stoppable.start()
    with shown.answered():
        shown["notice-action"].click()
    expect(shown["notice"]).to_be_hidden()
    assert shown.ids("shape") == moons.query(3, top=20).ids
    watch.expect("ERR_CONNECTION")  # now that the second question has failed, too


def test_an_explanation_that_does_not_come_is_said_on_its_card(shown, watch, stoppable):
    shown.open("#two-moons?ids=17")
    stoppable.stop()
    shown.reach("shape", shown.ids("shape")[2]).hover()
    expect(shown["why-path"]).to_have_text("The server does not answer.")
    watch.expect("ERR_CONNECTION")
    stoppable.start()
