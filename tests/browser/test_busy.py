"""A server that has too much to do."""

import asyncio
import re
from threading import Event, Thread

import pytest
from playwright.sync_api import expect
from running_service import running

from rankfold.service import Settings
from rankfold.service.app import create_app


@pytest.fixture
def app():
    return create_app({}, Settings(running=1, waiting=0))


@pytest.fixture
def address(app):
    with running(app) as client:
        yield str(client.base_url)


@pytest.fixture
def work(app):
    """Work that takes the only place, until it is let go."""
    let_go = Event()
    busy = Thread(target=lambda: asyncio.run(app.state.turns.run("change", let_go.wait)))
    yield busy, let_go
    let_go.set()
    busy.join()


@pytest.mark.parametrize("patient", [True, False])
def test_a_busy_server_is_asked_again(shown, watch, app, moons, work, patient):
    busy, let_go = work
    shown.open("#two-moons?ids=17")
    before = shown.ids("shape")
    busy.start()
    while not app.state.turns.running:
        pass
    shown["ask-id"].fill("3")
    shown["ask"].click()
    expect(shown["notice-text"]).to_have_text(
        re.compile(r"The server is busy\. Asking again in \d s\.")
    )
    assert shown.ids("shape") == before
    let_go.set()
    busy.join()
    with shown.answered():
        if not patient:
            shown["notice-action"].click(timeout=900)
    expect(shown["notice"]).to_be_hidden()
    assert shown.ids("shape") == moons.query(3, top=20).ids
    watch.expect("status of 503")
