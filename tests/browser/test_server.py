"""Servers that are busy, ask for a key, stop, change their index, or are slow to answer."""

import asyncio
import json
import re
from threading import Event, Thread

import numpy as np
import pytest
from playwright.sync_api import expect
from running_service import KEY, running

from rankfold import Index
from rankfold.service import Settings
from rankfold.service.app import create_app


@pytest.fixture
def address(request):
    """The server that the test names."""
    return request.getfixturevalue(request.param)


def served_by(fixture):
    return pytest.mark.parametrize("address", [fixture], indirect=True)


@pytest.fixture
def app():
    return create_app({}, Settings(running=1, waiting=0))


@pytest.fixture
def one_place(app):
    """A server that does one thing at a time."""
    with running(app) as client:
        yield str(client.base_url)


@pytest.fixture
def work(app):
    """Work that takes the only place, until it is let go."""
    let_go = Event()
    busy = Thread(target=lambda: asyncio.run(app.state.limiter.run("change", let_go.wait)))
    yield busy, let_go
    let_go.set()
    busy.join()


@served_by("one_place")
@pytest.mark.parametrize("patient", [True, False])
def test_a_busy_server_is_asked_again(shown, watch, app, moons, work, patient):
    busy, let_go = work
    shown.open("#two-moons?ids=17")
    before = shown.ids("shape")
    busy.start()
    while not app.state.limiter.running:
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


@pytest.fixture(scope="module")
def locked():
    with running(create_app({}, Settings(api_key=KEY))) as client:
        yield str(client.base_url)


@served_by("locked")
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


@served_by("locked")
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


@served_by("locked")
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
def stopping_server(stoppable):
    return stoppable.address


@served_by("stopping_server")
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


@served_by("stopping_server")
def test_an_explanation_that_does_not_come_is_said_on_its_card(shown, watch, stoppable):
    shown.open("#two-moons?ids=17")
    stoppable.stop()
    shown.reach("shape", shown.ids("shape")[2]).hover()
    expect(shown["why-path"]).to_have_text("The server does not answer.")
    watch.expect("ERR_CONNECTION")
    stoppable.start()


PARITY, HALF = ["even", "odd"], ["first", "second"]


@pytest.fixture
def changing():
    """A wave of points that are even or odd, and of the first or the second half."""
    X = np.column_stack([np.arange(40.0), 4 * np.sin(np.arange(40) / 6)])
    payload = {"parity": PARITY * 20, "half": [half for half in HALF for _ in range(20)]}
    with Index.build(X, payload=payload, n_neighbors=3) as index:
        yield index


@pytest.fixture
def changing_server(changing):
    with running(create_app({"changing": changing})) as client:
        yield str(client.base_url)


def sharing(index, query, column, answer):
    """Return how many results have the value of the query."""
    values = index.payload([query, *answer], [column])[column]
    return sum(value == values[0] for value in values[1:])


@served_by("changing_server")
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


@served_by("changing_server")
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


@served_by("changing_server")
def test_points_that_went_leave_the_map(shown, watch, changing):
    shown.open("#changing?ids=39")
    changing.remove([0])
    shown["ask-id"].fill("0")
    shown["ask"].click()
    expect(shown["lead"]).to_contain_text("the same 39 points")
    watch.expect("status of 422")


@served_by("changing_server")
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


@pytest.fixture(scope="module")
def examples_only():
    with running(create_app({})) as client:
        yield str(client.base_url)


class Held:
    """Answers to some requests, kept back until they are let go."""

    def __init__(self, page, pattern):
        self.page, self.routes = page, []
        page.route(pattern, lambda route: self.routes.append(route))

    def wait(self, count=1):
        while len(self.routes) < count:
            self.page.wait_for_timeout(10)

    def let_go(self, which=0):
        self.routes[which].continue_()


@served_by("examples_only")
def test_a_slider_moved_while_an_index_loads_does_not_stop_it(shown, page, examples):
    shown.open("#two-moons?ids=17")
    held = Held(page, "**/three-rings/map*")
    shown["tab"].nth(1).click()
    held.wait()
    assert page.evaluate("() => document.getElementById('layout').inert")
    slide = "slider => { slider.value = 9; slider.dispatchEvent(new Event('input')); }"
    shown["slider-k"].evaluate(slide)
    with shown.answered():
        held.let_go()
    assert not page.evaluate("() => document.getElementById('layout').inert")
    point = json.loads(shown.link.split("ids=")[1].split("&")[0])
    assert set(shown.ids("shape")) <= set(examples["three-rings"].ids)
    assert point in examples["three-rings"].ids
    expect(page.locator("nav [aria-current]")).to_have_text("Three rings")
    shown["tab"].first.click()
    expect(shown["lead"]).to_contain_text("the same 400 points")


@served_by("examples_only")
def test_the_index_before_is_open_to_use_when_another_does_not_load(shown, page, watch, moons):
    shown.open("#two-moons?ids=17")
    page.route("**/three-rings/map*", lambda route: route.abort())
    shown["tab"].nth(1).click()
    expect(shown["notice-text"]).to_contain_text("The server does not answer.")
    with shown.answered():
        shown["tab"].first.click()
    with shown.answered():
        shown["ask-id"].fill("3")
        shown["ask"].click()
    assert shown.ids("shape") == moons.query(3, top=20).ids
    watch.expect("three-rings/map|ERR_FAILED")


@served_by("examples_only")
def test_a_point_is_explained_though_the_next_answer_fails(shown, page, watch):
    shown.open("#two-moons?ids=17")
    held = Held(page, "**/query")
    shown["ask-id"].fill("3")
    shown["ask"].click()
    held.wait()
    point = shown.ids("shape")[0]
    shown.row("shape", point).locator(".pick").focus()
    expect(shown["why-path"]).to_have_text("Looking for the path …")
    page.wait_for_timeout(300)  # longer than the page waits before it asks
    held.routes[0].abort()
    expect(shown["why-text"]).to_contain_text(f"Why is {point} here?")
    watch.expect("query|ERR_FAILED")
