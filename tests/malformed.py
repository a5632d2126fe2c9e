"""Requests that nobody should send, made from a seed."""

import gzip
import json
import random
from copy import deepcopy
from typing import NamedTuple

from running_service import KEY

VALID = {
    "query": {
        "queries": [
            {
                "ids": [1, 2],
                "vectors": [[0.5, 1.5]],
                "weights": [1.0, 2.0, 0.5],
                "negative": [3],
                "negative_vectors": [[9.0, 9.0]],
                "where": "price < 30 and not sold",
                "top": 5,
                "offset": 1,
                "diversity": 0.5,
                "method": "ran",
                "parameters": {"n_neighbors": 5, "smoothness": 10.0, "max_iter": 2},
                "columns": ["price"],
            },
            {"ids": [7], "method": "pagerank", "parameters": {"alpha": 0.9}},
        ]
    },
    "explain": {"query": {"ids": [0], "vectors": [[1.0, 2.0]], "top": 3}, "id": 5},
    "points": {"ids": [0, 1, 2], "columns": ["price"], "vectors": True, "images": True},
    "add": {"points": [{"id": "new", "vector": [1.0, 2.0], "payload": {"price": 3}}]},
    "update": {"points": [{"id": 4, "vector": [1.0, 2.0], "payload": {"colour": "red"}}]},
    "remove": {"ids": [11, 12]},
}
STRANGE = [
    None, True, -1, 0, 2**53, 2**63, -(2**63) - 1, 10**400, 1e308, -1e308, 5e-324, -0.0, 1.5,
    float("nan"), float("inf"), -float("inf"), "", "\x00", "\ud800", "a\udfffb", "x" * 5000, "1",
    "' OR 1=1 --", "../../etc/hosts", "%s%n{0}", "price <", "((((price", "\u202e\uffff", [], {},
    [[]], [None], [[1.0], [1.0, 2.0]], {"": 1}, {"\x00": None}, {"x" * 2000: 1}, [1] * 3000,
]  # fmt: skip
TYPES = ["", "text/plain", "application/xml", "multipart/form-data", "application/jsonx", "\x7f"]
GARBAGE = [
    b"\r\n\r\n", b"\x00" * 100, b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00",
    b"GET / HTTP/1.1\r\n\r\n", b"GET  HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -5\r\n\r\n",
    b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
    b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"GET /\xff\xfe HTTP/1.1\r\nHost: l\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000 + b"\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET /%00%ff HTTP/1.1\r\nHost: localhost\r\n\r\n",
]  # fmt: skip
CHUNKS = [b"zz\r\nab\r\n", b"-1\r\n\r\n", b"fffffffffffffffff\r\n{", b"2\r\n{}x\r\n0\r\n\r\n"]


class Malformed(NamedTuple):
    """A request as it is sent; ``broken`` if there is no way to understand it."""

    kind: str
    sent: bytes
    broken: bool


def requests(n_requests, name):
    """Yield requests to an index; all kinds come equally often."""
    chance = random.Random(0)
    for number in range(n_requests):
        kind, make = list(KINDS.items())[number % len(KINDS)]
        verb = chance.choice(list(VALID))
        yield Malformed(kind, make(chance, f"/v1/indexes/{name}/{verb}", VALID[verb]), kind in LOST)


def message(path, body, length=None, **headers):
    """Return a request; ``length`` is what it says about the body."""
    named = {
        "Host": "localhost",
        "Authorization": f"Bearer {KEY}",
        "Content-Type": "application/json",
        "Content-Length": len(body) if length is None else length,
        "Connection": "close",
    }
    named |= {word.replace("_", "-"): value for word, value in headers.items()}
    lines = [f"{word}: {value}\r\n" for word, value in named.items() if value is not None]
    return f"POST {path} HTTP/1.1\r\n{''.join(lines)}\r\n".encode("latin-1") + body


def places(value, path=()):
    """Yield the way to every value inside of a body."""
    inside = value.items() if isinstance(value, dict) else enumerate(value)
    for key, one in inside:
        yield (*path, key)
        if isinstance(one, dict | list):
            yield from places(one, (*path, key))


def strange_value(chance, path, valid):
    body = deepcopy(valid)
    for _ in range(chance.choice([1, 1, 2])):
        *way, last = chance.choice(list(places(body)))
        parent = body
        for key in way:
            parent = parent[key]
        if chance.random() < 0.2:
            del parent[last]
        else:
            parent[last] = deepcopy(chance.choice(STRANGE))
    if not body:
        body = None
    return message(path, json.dumps(body).encode())


def strange_root(chance, path, valid):
    root = chance.choice([*STRANGE, {"extra": valid}, [valid], json.dumps(valid)])
    return message(path, json.dumps(root).encode())


def truncated(chance, path, valid):
    whole = json.dumps(valid).encode()
    return message(path, whole[: chance.randrange(len(whole))])


def noise(chance, path, valid):
    whole = bytearray(json.dumps(valid).encode())
    for _ in range(chance.randrange(1, 5)):
        whole[chance.randrange(len(whole))] = chance.choice([0, 0x80, 0xC0, 0xFF, 0xED])
    return message(path, bytes(whole))


def nested(chance, path, valid):
    depth = chance.choice([100, 1000, 10_000, 100_000, 1_000_000])
    start, end = chance.choice([(b"[", b"]"), (b'{"queries":', b"}"), (b'{"ids":[', b"]}")])
    return message(path, start * depth + b"1" + end * depth)


def twice(chance, path, valid):
    name = next(iter(valid))
    value = json.dumps(chance.choice(STRANGE))
    return message(path, json.dumps(valid)[:-1].encode() + f', "{name}": {value}}}'.encode())


def long_number(chance, path, valid):
    digits = "9" * chance.choice([400, 5000, 100_000])
    number = chance.choice([digits, f"-{digits}", f"1e{digits[:5]}", f"0.{digits}", f"{digits}e9"])
    return message(path, json.dumps(valid).replace("1", number, 1).encode())


def long_text(chance, path, valid):
    name = chance.choice(["ids", "where", "id"])
    return message(path, json.dumps({name: "\\" * chance.choice([10**5, 10**6])}).encode())


def wrong_type(chance, path, valid):
    return message(path, json.dumps(valid).encode(), Content_Type=chance.choice(TYPES))


def other_charset(chance, path, valid):
    code = chance.choice(["utf-16", "utf-32", "cp037"])
    kind = f"application/json; charset={code}"
    return message(path, json.dumps(valid).encode(code), Content_Type=kind)


def squeezed(chance, path, valid):
    body = json.dumps(valid).encode()
    body = gzip.compress(body, mtime=0) if chance.random() < 0.5 else body[:-1]
    return message(path, body, Content_Encoding="gzip")


def wrong_length(chance, path, valid):
    body = json.dumps(valid).encode()
    length = chance.choice([len(body) + 7, 0, 1, len(body) - 1, 10**12, 10**30, "x", "+5", ""])
    return message(path, body, length)


def chunked(chance, path, valid):
    body = chance.choice(CHUNKS)
    start = message(path, b"", Transfer_Encoding="chunked", Content_Length=None)
    return start + body


def empty(chance, path, valid):
    return message(path, chance.choice([b"", b" ", b"\xef\xbb\xbf", b"\n\n", b"null", b"//"]))


def garbage(chance, path, valid):
    noise = bytes(chance.randrange(256) for _ in range(200))
    return chance.choice([*GARBAGE, noise, noise + b"\r\n\r\n"])


KINDS = {
    make.__name__: make
    for make in (
        strange_value, strange_root, truncated, noise, nested, twice, long_number, long_text,
        wrong_type, other_charset, squeezed, wrong_length, chunked, empty, garbage,
    )
}  # fmt: skip
LOST = ("truncated", "nested", "long_text", "wrong_type", "squeezed", "chunked", "empty")
