"""/docs: all of the description, and nothing from elsewhere."""

import html
import json
import re
from html.parser import HTMLParser

import pytest
from running_service import KEY, running

from rankfold.service import Settings, create_app


class Page(HTMLParser):
    """Collects the addresses that a page refers to, its scripts, and its words."""

    def __init__(self, text):
        super().__init__()
        self.addresses, self.tags, self.words, self.anchors = [], set(), "", set()
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.add(tag)
        given = dict(attributes)
        self.addresses += [given[name] for name in ("href", "src", "action") if name in given]
        self.anchors.add(given.get("id"))
        assert not [name for name in given if name == "style" or name.startswith("on")]

    def handle_data(self, data):
        self.words += data


@pytest.fixture(scope="module")
def text(client):
    response = client.get("/docs")
    assert response.status_code == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    return response.text


def test_nothing_comes_from_elsewhere(text, client):
    page = Page(text)
    assert page.addresses
    assert "script" not in page.tags
    for address in page.addresses:
        assert re.match(r"[/#](?!/)", address), address
        if address.startswith("/"):
            assert client.get(address).status_code == 200, address
        else:
            assert address[1:] in page.anchors, address
    style = client.get("/docs/style.css")
    assert style.headers["Content-Type"].startswith("text/css")
    assert not re.search(r"https?:|//|@import|url\(", style.text + re.sub(r"<[^>]*>", "", text))


def test_all_operations_and_fields_are_there(text, client):
    words = Page(text).words
    described = client.get("/openapi.json").json()
    for path, operations in described["paths"].items():
        for method in operations:
            assert f"{method.upper()} {path}" in words
    for name, schema in described["components"]["schemas"].items():
        assert name in words
        for field in schema.get("properties", {}):
            assert field in words


def test_operations_are_listed_first_and_show_what_they_take(text, client):
    page = Page(text)
    assert "post-v1-indexes-name-query" in page.anchors
    assert "#post-v1-indexes-name-query" in page.addresses
    contents, *described = text.split("<h2 ")
    known = client.get("/openapi.json").json()
    n_operations = sum(len(operations) for operations in known["paths"].values())
    assert contents.count("<tr>") == n_operations
    (query,) = [one for one in described if one.startswith('id="post-v1-indexes-name-query"')]
    example = known["components"]["schemas"]["QueriesRequest"]["examples"][0]
    assert html.escape(json.dumps(example)) in query


def test_it_needs_no_key():
    with running(create_app({}, Settings(api_key=KEY))) as client:
        assert client.get("/docs").status_code == 200
        assert client.get("/docs/style.css").status_code == 200
        assert client.get("/docs/other.css").status_code == 401
