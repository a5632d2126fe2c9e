"""Serves an index: the page, its version and an answer."""

import json
from importlib.metadata import version
from urllib.request import ProxyHandler, Request, build_opener

from serving import serving

from rankfold import Index, datasets

Index.build(datasets.load("moons").X, path="mine").close()
direct = build_opener(ProxyHandler({}))


def get(address, body=None):
    """Return what the service answers."""
    content = None if body is None else json.dumps(body).encode()
    asked = Request(address, content, {"Content-Type": "application/json"})  # noqa: S310
    with direct.open(asked, timeout=60) as answer:
        return answer.read()


with serving("mine") as service:
    assert json.loads(get(f"{service.address}/health")) == {
        "status": "ok",
        "version": version("rankfold"),
    }
    described = json.loads(get(f"{service.address}/openapi.json"))
    assert described["info"]["version"] == version("rankfold")
    assert b"<title>rankfold" in get(f"{service.address}/")
    body = {"queries": [{"ids": [0], "top": 3}]}
    answer = json.loads(get(f"{service.address}/v1/indexes/mine/query", body))
    assert len(answer["answers"][0]["results"]) == 3
