"""A real service and a real browser; needs Chromium, see ``make test-browser``."""

import re
import shutil
from time import monotonic

import pytest
from browser.page_view import PageView
from playwright.sync_api import expect, sync_playwright
from serving import serving

from rankfold import Index, datasets
from rankfold.demo import IMAGES
from rankfold.service.app import build_examples

NAMES = ("chromium", "chromium-browser", "google-chrome")
ARGUMENTS = (
    "--headless",
    "--no-sandbox",  # containers have no room for one
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--use-angle=swiftshader",  # WebGL without a graphics card
    "--enable-unsafe-swiftshader",
)


READING_BACK = "GPU stall due to ReadPixels"
"""So a graphics driver in software says that a screenshot was taken."""

PATIENCE = 60_000
"""Milliseconds in which what is waited for must come, also where others use the machine."""

expect.set_options(timeout=PATIENCE)


class Watch:
    """Troubles of a page: errors, warnings, failed requests, and requests to elsewhere."""

    def __init__(self, page, address):
        self.page, self.address, self.troubles = page, address, []
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.troubles.append(f"error: {error}"))
        page.on("request", self._request)
        page.on("requestfailed", self._failed)

    def expect(self, pattern, patience=PATIENCE):
        """Take back troubles that a test brings about; there must be some, now or soon."""
        end = monotonic() + patience / 1000
        while not (found := [one for one in self.troubles if re.search(pattern, one)]):
            assert monotonic() < end, f"no trouble matches {pattern!r}: {self.troubles}"
            self.page.wait_for_timeout(10)
        self.troubles = [trouble for trouble in self.troubles if trouble not in found]

    def check(self):
        """Fail if there was any."""
        assert not self.troubles, "\n".join(self.troubles)

    def _console(self, message):
        if message.type in ("error", "warning", "assert") and READING_BACK not in message.text:
            self.troubles.append(f"console {message.type}: {message.text}")

    def _request(self, request):
        if not request.url.startswith((f"{self.address}/", "data:", "blob:")):
            self.troubles.append(f"request to elsewhere: {request.url}")

    def _failed(self, request):
        # A page may give up what it asked for, when the next question is there already.
        if request.failure != "net::ERR_ABORTED":
            self.troubles.append(f"request failed: {request.url} ({request.failure})")


@pytest.fixture(scope="session")
def browser():
    executable = next(filter(None, map(shutil.which, NAMES)), None)
    assert executable, f"none of {', '.join(NAMES)} is on the PATH; run: make test-browser"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=ARGUMENTS)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def digits(tmp_path_factory):
    """The folder of an index of digits."""
    data = datasets.load("digits")
    path = tmp_path_factory.mktemp("indexes") / "digits"
    payload = {"digit": data.labels}
    Index.build(data.X, payload=payload, path=path, source=IMAGES, layout="graph").close()
    return path


@pytest.fixture(scope="session")
def examples():
    """Indexes of two moons and of three rings, for the answers that the page should show."""
    found = build_examples()
    yield found
    for index in found.values():
        index.close()


@pytest.fixture(scope="session")
def moons(examples):
    return examples["two-moons"]


@pytest.fixture(scope="session")
def numerals(digits):
    """The index of digits, opened."""
    with Index.open(digits) as index:
        yield index


@pytest.fixture(scope="session")
def service(digits):
    with serving(digits) as service:
        yield service


@pytest.fixture
def address(service):
    """Where the page under test is; a file of tests may have another."""
    return service.address


@pytest.fixture
def viewport():
    """Width and height; a file of tests may have another."""
    return (1280, 800)


@pytest.fixture
def manners():
    """Further traits of the browser, such as a finger for a mouse; a file may have others.

    Colours stand at once, so that pixels can be read.
    """
    return {"reduced_motion": "reduce"}


@pytest.fixture
def context(browser, address, viewport, manners):
    size = dict(zip(("width", "height"), viewport, strict=True))
    context = browser.new_context(base_url=address, viewport=size, **manners)
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


@pytest.fixture
def watch(context, address, request):
    """What went wrong on the page; at the end of the test nothing may have."""
    page = context.new_page()
    watch = Watch(page, address)
    yield watch
    folder = request.config.rootpath / "out" / "screenshots"
    name = re.sub(r"[^\w.-]+", "-", request.node.name).strip("-")
    page.screenshot(path=folder / f"{name}.png")
    watch.check()


@pytest.fixture
def page(watch):
    """A page that is watched."""
    return watch.page


@pytest.fixture
def shown(page):
    """The page as a user sees it; not opened yet."""
    return PageView(page)
