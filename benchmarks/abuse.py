"""Can one client hold up the others? A light query beside attacks of every kind.

The service is a process of its own, without a key, so that whoever reaches it may read. Some
attackers at a time send what costs most, and hang up after a second, or hold as many connections
open as they can; meanwhile another client asks a small index for the ten best, again and again. At
the end SIGTERM is sent while the most expensive attack goes on.
"""

import json
import logging
import os
import signal
import socket
import sys
from collections import deque
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from time import monotonic, sleep
from typing import NamedTuple

import httpx
import numpy as np
from kit.load import process
from kit.memory import resident_mb
from kit.report import OUT, Goal, options, publish, table, versions

from rankfold import Index
from rankfold.datasets.synthetic import sheets

LARGE, FACTORISED, SMALL = 70_000, 4_900, 2_000
WORDS = ("chess", "tea", "harbour", "violin", "granite", "meadow", "engine", "lantern")
N_ATTACKERS, PATIENCE = 8, 1.0
MOST_P99, MOST_UNTIL_END = 0.5, 10.0


def query_body(number, **query):
    return json.dumps({"queries": [{"ids": [number % SMALL], **query}]}).encode()


def asking(index, body, what="query"):
    """Return a whole request for answers of an index."""
    lines = [f"POST /v1/indexes/{index}/{what} HTTP/1.1", "Host: localhost"]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}", "", ""]
    return "\r\n".join(lines).encode() + body


def costly(number, **parameters):
    hard = {"smoothness": 1e6, "tol": 1e-12, **parameters}
    return asking("large", query_body(number, parameters=hard))


def alternations(number):
    return costly(number, max_iter=20, gamma="shared", guard=False, n_neighbors=10)


def proofs(number):
    return costly(number, budget="proven", fusion="none")


def steps(number):
    return asking("large", query_body(number, method="lcdp", parameters={"n_steps": 1000}))


def factorisations(number):
    return asking("medium", query_body(number, parameters={"smoothness": 1 + number / 7}))


def many_values(number):
    return asking("small", b'{"queries":[' + b"[]," * 340_000 + b"{}]}")


def deep(number):
    return asking("small", b"[" * 1_000_000)


def numbers(number):
    return asking("small", b"[" + b"1," * 500_000 + b"1]")


def conditions(number):
    tests = " or ".join(f"name like '%{number}-{place}'" for place in range(80))
    return asking("large", query_body(number, where=tests))


def large_answers(number):
    queries = [{"ids": [(number + place) % SMALL], "top": SMALL - 1} for place in range(64)]
    return asking("small", json.dumps({"queries": queries}).encode())


def texts_to_rerank(number):
    documents = [f"{place} {WORDS[(number + place) % len(WORDS)]} " * 60 for place in range(1000)]
    body = {"query": "chess", "documents": documents, "return_documents": True}
    return asking("texts", json.dumps(body).encode(), "rerank")


def points_to_rerank(number):
    ids = [(number + place) % LARGE for place in range(1000)]
    return asking("large", json.dumps({"query": [0.1] * 32, "ids": ids}).encode(), "rerank")


def beginnings(number):
    words = " ".join(f"{one}*" for one in "p1234567890" * 9)
    return asking("large", json.dumps({"words": words, "top": 2000}).encode(), "find")


def groups(number):
    return asking("large", query_body(number, group_by="sheet", top=2000, offset=number % 9))


def lists_of_points(number):
    body = {"where": f"name like '%{number % 9}'", "top": 1000, "vectors": True}
    return asking("large", json.dumps(body).encode(), "scroll")


def slow_headers(number):
    return b"GET /v1/indexes HTTP/1.1\r\nHost: localhost\r\nX-Slow: "


def endless_body(number):
    lines = ["POST /v1/nothing HTTP/1.1", "Host: localhost", "Transfer-Encoding: chunked", "", ""]
    return "\r\n".join(lines).encode() + b"1\r\n0\r\n" * 1000


def half_a_body(number):
    return asking("small", query_body(number))[:-1]


def nothing(number):
    return b""


class Attack(NamedTuple):
    """A request, and how many connections are held open with it; then no answer is read."""

    request: Callable[[int], bytes]
    n_held: int = 0


ATTACKS = {
    "nobody": None,
    "20 alternations of a shared gamma": Attack(alternations),
    "proofs at smoothness 1e6": Attack(proofs),
    "1,000 steps of LCDP": Attack(steps),
    "a factorisation for every request": Attack(factorisations),
    "80 patterns in a condition": Attack(conditions),
    "1,000 texts to rerank": Attack(texts_to_rerank),
    "1,000 points to rerank": Attack(points_to_rerank),
    "99 beginnings of words": Attack(beginnings),
    "2,000 groups of which there are 10": Attack(groups),
    "lists of points under a pattern": Attack(lists_of_points),
    "bodies of a million bytes, all brackets": Attack(many_values),
    "bodies of a million bytes, all numbers": Attack(numbers),
    "a million levels of brackets": Attack(deep),
    "answers of 10 MB": Attack(large_answers),
    "answers of 10 MB that nobody reads": Attack(large_answers, n_held=200),
    "headers that never end": Attack(slow_headers, n_held=200),
    "bodies that never end": Attack(endless_body),
    "bodies that stop half-way": Attack(half_a_body, n_held=400),
    "connections that say nothing": Attack(nothing, n_held=800),
}


def attack(address, attack, number, over):
    """Send requests until it is over."""
    host, port = address.removeprefix("http://").split(":")
    send = hold if attack.n_held else hang_up
    send((host, int(port)), attack, number, over)


def hang_up(address, attack, number, over):
    """Send requests, one after the other, and hang up after a second."""
    while not over.is_set():
        try:
            with socket.create_connection(address, timeout=PATIENCE) as connection:
                connection.sendall(attack.request(number))
                while connection.recv(65536):
                    pass
        except OSError:  # it took too long, or was refused
            pass
        number += N_ATTACKERS


def hold(address, attack, number, over):
    """Send requests, and hold so many connections open, the newest ones."""
    held = deque()
    while not over.wait(0.05):
        try:
            connection = socket.create_connection(address, timeout=PATIENCE)
            held.append(connection)
            connection.sendall(attack.request(number))
        except OSError:
            pass
        if len(held) > attack.n_held // N_ATTACKERS:
            held.popleft().close()
        number += N_ATTACKERS
    for connection in held:
        connection.close()


def light_queries(address, seconds):
    """Ask for some seconds; return how long each answer took, and how many were refused."""
    took, refused = [], 0
    until, number = monotonic() + seconds, 0
    with httpx.Client(base_url=address, timeout=60) as client:
        while monotonic() < until:
            number += 1
            body = {"queries": [{"ids": [number % SMALL]}]}
            start = monotonic()
            refused += client.post("/v1/indexes/small/query", json=body).status_code != 200
            took.append(monotonic() - start)
            sleep(0.02)
    return np.array(took), refused


@contextmanager
def attacked(service, chosen):
    """Let attackers begin; they go on until the end of the block."""
    over = Event()
    arguments = [(service.address, chosen, number, over) for number in range(N_ATTACKERS)]
    attackers = [Thread(target=attack, args=given) for given in arguments if chosen]
    for attacker in attackers:
        attacker.start()
    try:
        sleep(2 * PATIENCE if chosen else 0)
        yield
    finally:
        over.set()
        for attacker in attackers:
            attacker.join()


def under(service, chosen, seconds):
    """Return a row: a light query beside an attack."""
    with attacked(service, chosen):
        took, refused = light_queries(service.address, seconds)
    return {
        "queries": len(took),
        "median s": float(np.median(took)),
        "p99 s": float(np.quantile(took, 0.99)),
        "most s": float(took.max()),
        "refused": refused,
        "MB": resident_mb(service.number),
    }


def seconds_until_end(service):
    """Send SIGTERM in the middle of an attack; return how long the process takes to end."""
    with attacked(service, Attack(alternations)):
        os.kill(service.number, signal.SIGTERM)
        start = monotonic()
        os.waitid(os.P_PID, service.number, os.WEXITED | os.WNOWAIT)
        return monotonic() - start


def build(folder):
    paths = []
    for name, n_points in (("large", LARGE), ("medium", FACTORISED), ("small", SMALL)):
        print(f"building an index of {n_points:,} points", flush=True)
        data = sheets(n_points, n_sheets=10)
        payload = {"sheet": data.labels, "name": [f"point {number}" for number in range(n_points)]}
        Index.build(data.X.astype(np.float32), payload=payload, path=folder / name).close()
        paths.append(str(folder / name))
    texts = [f"{WORDS[number % len(WORDS)]} number {number}" for number in range(SMALL)]
    Index.build(texts=texts, embedder="wordllama", path=folder / "texts").close()
    logging.getLogger("httpx").setLevel("WARNING")  # wordllama lets everybody log
    return [*paths, str(folder / "texts")]


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=20, help="of each attack")
    arguments = parser.parse_args()
    script = str(Path(sys.executable).with_name("rankfold"))
    with TemporaryDirectory(prefix="rankfold-abuse-") as folder:
        command = [script, "serve", *build(Path(folder)), "--port", "0", "--log-level", "error"]
        with process(command, OUT / "abuse.log") as service:
            rows = table(
                {"attack": name, **under(service, chosen, arguments.seconds)}
                for name, chosen in ATTACKS.items()
            )
            ended = seconds_until_end(service)
    goals = [
        Goal("p99 of a light query, worst", max(row["p99 s"] for row in rows), most=MOST_P99,
             unit="s"),
        Goal("light queries refused", sum(row["refused"] for row in rows), most=0),
        Goal("from SIGTERM to the end", ended, most=MOST_UNTIL_END, unit="s"),
    ]  # fmt: skip
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"{LARGE:,}, {FACTORISED:,} and {SMALL:,} points on sheets; {N_ATTACKERS} attackers, "
        f"{arguments.seconds} s each. " + versions("rankfold", "fastapi", "uvicorn"),
    ]
    publish("abuse", "a light query beside attacks", intro, {"Attacks": rows}, goals,
            docs=arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
