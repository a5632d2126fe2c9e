"""The watch over every page: whether troubles are noticed at all, on a page of our own."""

from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

HEAD = '<!doctype html><link rel="icon" href="data:,"><title>plain</title><p>text</p>'


class QuietHandler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("plain")


@pytest.fixture(scope="module")
def server(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=folder))
    thread = Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def address(server):
    return f"http://127.0.0.1:{server.server_port}"


@pytest.fixture
def show(folder, page):
    """Show a page with this in it, until nothing more happens."""

    def show(content):
        (folder / "plain.html").write_text(HEAD + content)
        page.goto("/plain.html", wait_until="networkidle")
        return page

    return show


def test_plain_page_has_no_troubles(show, watch):
    page = show("<script>console.log('fine')</script><style>p { color: green }</style>")
    assert page.title() == "plain"
    assert page.inner_text("p") == "text"
    assert watch.troubles == []


@pytest.mark.parametrize(
    ("content", "trouble"),
    [
        ("<script>console.error('bad')</script>", "console error: bad"),
        ("<script>console.warn('odd')</script>", "console warning: odd"),
        ("<script>console.assert(false, 'untrue')</script>", "console assert: untrue"),
        ("<script>throw new Error('thrown')</script>", "error: thrown"),
        ("<script>Promise.reject(new Error('lost'))</script>", "error: lost"),
        ("<img src='/missing.png'>", "console error: .*404"),
        ("<script src='http://127.0.0.1:9/x.js'></script>", "request failed: .*:9/x.js"),
    ],
    ids=["error", "warning", "assertion", "throw", "promise", "missing", "unreachable"],
)
def test_troubles_are_noticed(show, watch, content, trouble):
    show(content)
    with pytest.raises(AssertionError, match=trouble):
        watch.check()
    watch.troubles.clear()


def test_requests_to_elsewhere_are_noticed(show, watch, server, folder):
    (folder / "other.html").write_text(HEAD)
    elsewhere = f"http://localhost:{server.server_port}/other.html"
    show(f"<iframe src='{elsewhere}'></iframe>")
    assert watch.troubles == [f"request to elsewhere: {elsewhere}"]
    watch.expect("^request to elsewhere")


def test_expected_troubles_must_happen(show, watch):
    show("<script>console.error('bad')</script>")
    with pytest.raises(AssertionError, match="no trouble matches 'worse'"):
        watch.expect("worse", patience=100)
    watch.expect("bad")


def test_what_a_page_gives_up_is_no_trouble(show, watch):
    page = show("")
    page.evaluate(
        "() => { const stop = new AbortController();"
        " fetch('/plain.html', {signal: stop.signal}).catch(() => {}); stop.abort(); }"
    )
    page.wait_for_load_state("networkidle")
    assert watch.troubles == []


def test_there_is_webgl(show):
    page = show("<canvas></canvas>")
    assert page.evaluate("() => document.querySelector('canvas').getContext('webgl2') !== null")
