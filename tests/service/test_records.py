"""Headers, request ids, metrics and the log."""

import asyncio
import json
import logging
import subprocess
import sys
from threading import Event

import pytest
from guarded_service import JSON, asking, guarded

from rankfold.errors import StorageError
from rankfold.service.app import create_app
from rankfold.service.limits import Settings
from rankfold.service.logs import JsonLines

ORIGIN = "https://example.org"


def answers(app, *requests):
    async def ask():
        async with asking(app) as client:
            return [
                await client.request(method, path, **options) for method, path, options in requests
            ]

    return asyncio.run(ask())


@pytest.mark.parametrize("path", ["/health", "/nothing", "/fail/bug"])
def test_every_answer_has_its_headers(path):
    app, _ = guarded()
    (response,) = answers(app, ("GET", path, {}))
    assert response.headers["X-Content-Type-Options"] == "nosniff"
    assert response.headers["Referrer-Policy"] == "no-referrer"
    assert response.headers["X-Frame-Options"] == "DENY"
    policy = response.headers["Content-Security-Policy"]
    assert "default-src 'self';" in policy
    assert "unsafe" not in policy
    assert not [name for name in response.headers if name.startswith("access-control")]


def test_other_pages_are_allowed_by_name():
    app, _ = guarded(Settings(origins=(ORIGIN,)))
    asked = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    allowed, failed, preflight, foreign = answers(
        app,
        ("GET", "/health", {"headers": {"Origin": ORIGIN}}),
        ("GET", "/fail/bug", {"headers": {"Origin": ORIGIN}}),
        ("OPTIONS", "/length", {"headers": {"Origin": ORIGIN, **asked}}),
        ("OPTIONS", "/length", {"headers": {"Origin": "https://example.com", **asked}}),
    )
    assert allowed.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert failed.status_code == 500
    assert failed.headers["Access-Control-Allow-Origin"] == ORIGIN
    assert preflight.status_code == 200
    assert foreign.status_code == 400
    assert "Access-Control-Allow-Origin" not in foreign.headers


@pytest.mark.parametrize(
    ("origin", "method"), [("https://elsewhere.org", "POST"), (ORIGIN, "DELETE")]
)
def test_a_page_that_may_not_ask_is_told_so_by_a_problem(origin, method):
    app, _ = guarded(Settings(origins=(ORIGIN,)))
    headers = {"Origin": origin, "Access-Control-Request-Method": method}
    (refused,) = answers(app, ("OPTIONS", "/length", {"headers": headers}))
    assert refused.status_code == 400
    assert refused.headers["Content-Type"] == "application/problem+json"
    assert "--cors" in refused.json()["detail"]
    assert "Access-Control-Allow-Origin" not in refused.headers


@pytest.mark.parametrize(
    ("given", "kept"), [("abc-1.2_Z", True), ("a" * 65, False), ('a"b', False), ("a b", False)]
)
def test_a_plain_request_id_is_kept(given, kept):
    app, _ = guarded()
    first, second = answers(app, *[("GET", "/health", {"headers": {"X-Request-ID": given}})] * 2)
    assert (first.headers["X-Request-ID"] == given) == kept
    assert (first.headers["X-Request-ID"] == second.headers["X-Request-ID"]) == kept


class Unreadable:
    def __len__(self):
        raise StorageError("gone")


def test_metrics_count_by_route_and_never_by_path():
    points = [1, 2, 3]
    app, work = guarded(indexes={"three": points, "gone": Unreadable()})
    work.let_go.set()
    app.state.metrics.ranked("ran", certified=True)
    app.state.metrics.ranked("ran", certified=False)
    points.append(4)
    *_, response = answers(
        app,
        ("GET", "/fail/bug", {}),
        ("GET", "/fail/input", {}),
        ("GET", "/nothing/one", {}),
        ("GET", "/nothing/two", {}),
        ("BREW", "/nothing/two", {}),
        ("POST", "/length", {"content": "x"}),
        ("GET", "/metrics", {}),
    )
    assert response.headers["Content-Type"].startswith("text/plain")
    lines = set(response.text.splitlines())
    for line in (
        'rankfold_requests_total{method="GET",route="/fail/{kind}",status="500"} 1.0',
        'rankfold_requests_total{method="GET",route="/fail/{kind}",status="422"} 1.0',
        'rankfold_requests_total{method="GET",route="unmatched",status="404"} 2.0',
        'rankfold_requests_total{method="other",route="unmatched",status="404"} 1.0',
        'rankfold_request_seconds_count{method="GET",route="/fail/{kind}"} 2.0',
        'rankfold_rejected_total{reason="content_type"} 1.0',
        'rankfold_queries_total{method="ran"} 2.0',
        'rankfold_certified_total{method="ran"} 1.0',
        'rankfold_points{index="three"} 4.0',
    ):
        assert line in lines
    assert "/nothing" not in response.text
    assert 'index="gone"' not in response.text


class Slow:
    """Has more points each time, and tells so once it is let go."""

    def __init__(self):
        self.let_go, self.n_points, self.n_threads = Event(), 6, 0

    def __len__(self):
        self.n_threads += 1
        assert self.let_go.wait(30)
        self.n_threads -= 1
        self.n_points += 1
        return self.n_points


def test_metrics_do_not_wait_for_an_index_without_end(monkeypatch):
    monkeypatch.setattr("rankfold.service.metrics.PATIENCE", 0.05)
    slow, quick = Slow(), [1, 2]
    app, _ = guarded(indexes={"slow": slow, "quick": quick})

    async def scene():
        async with asking(app) as client:
            slow.let_go.set()
            assert 'rankfold_points{index="slow"} 7.0' in (await client.get("/metrics")).text
            slow.let_go.clear()
            quick.append(3)
            several = await asyncio.gather(*[client.get("/metrics") for _ in range(50)])
            assert slow.n_threads == 1
            for response in several:
                assert response.status_code == 200
                assert 'rankfold_points{index="slow"} 7.0' in response.text
            assert any('rankfold_points{index="quick"} 3.0' in one.text for one in several)

    try:
        asyncio.run(scene())
    finally:
        slow.let_go.set()


def test_the_log_tells_of_requests_and_nothing_of_their_content(caplog):
    caplog.set_level("INFO", logger="rankfold.service")
    app, _ = guarded()
    body = json.dumps({"items": [{"name": "secret-1", "top": 1}]})
    headers = {**JSON, "Authorization": "Bearer secret-2"}
    (response,) = answers(
        app, ("POST", "/items?limit=3&other=secret-3", {"content": body, "headers": headers})
    )
    (record,) = [record for record in caplog.records if record.name == "rankfold.service"]
    line = JsonLines().format(record)
    assert "secret" not in line
    facts = json.loads(line)
    assert facts["request_id"] == response.headers["X-Request-ID"]
    assert facts["milliseconds"] >= 0
    told = [facts[name] for name in ("level", "event", "method", "route", "status")]
    assert told == ["info", "request", "POST", "/items", 200]


def test_files_of_the_page_are_logged_for_those_who_look_closer(caplog):
    caplog.set_level("DEBUG", logger="rankfold.service")
    paths = ["/", "/page/main.js", "/page/style.css", "/page/gone.js"]
    answers(create_app({}), *[("GET", path, {}) for path in paths])
    told = [
        (record.levelname, record.route, record.status)
        for record in caplog.records
        if record.getMessage() == "request"
    ]
    assert told == [
        ("INFO", "/", 200),
        ("DEBUG", "/page/{name}", 200),
        ("DEBUG", "/page/{name}", 200),
        ("INFO", "/page/{name}", 404),
    ]


def test_tracebacks_are_a_field():
    try:
        _ = 1 / 0
    except ZeroDivisionError:
        line = JsonLines().format(
            logging.LogRecord("a", logging.ERROR, "", 0, "%s", ("error",), sys.exc_info())
        )
    assert "\n" not in line
    assert json.loads(line)["traceback"].endswith("ZeroDivisionError: division by zero")


def test_everything_is_written_as_json_on_standard_error():
    # In a process of its own, since logging belongs to the whole process.
    code = """
import logging, warnings
from rankfold.service.logs import write_logs
write_logs("info")
logging.getLogger("uvicorn.error").info("from %s", "uvicorn")
logging.getLogger("rankfold.service").debug("too low")
logging.getLogger("rankfold.service").info("request", extra={"status": 200})
warnings.warn("take care")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["event"].split("\n")[0] for line in lines][:2] == ["from uvicorn", "request"]
    assert lines[1]["status"] == 200
    assert "take care" in lines[2]["event"]
    assert len(lines) == 3


TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@pytest.mark.parametrize("path", ["/health", "/fail/bug", "/nothing"])
def test_the_trace_of_a_client_is_in_the_log_and_in_the_answer(path, caplog):
    app, _ = guarded()
    caplog.set_level(logging.INFO, "rankfold.service")
    headers = {"traceparent": f"00-{TRACE}-{SPAN}-01"}
    (response,) = answers(app, ("GET", path, {"headers": headers}))
    version, trace, span, flags = response.headers["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01")
    assert span != SPAN
    lines = [json.loads(JsonLines().format(one)) for one in caplog.records]
    assert len(lines) == (2 if path == "/fail/bug" else 1)
    for line in lines:
        assert (line["trace_id"], line["span_id"], line["parent_id"]) == (TRACE, span, SPAN)
        assert line["request_id"] == response.headers["X-Request-ID"]


@pytest.mark.parametrize(
    "given",
    [
        "",
        "hello",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-01-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{TRACE.upper()}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE}-{SPAN}-01, 00-{TRACE}-{SPAN}-01",
    ],
)
def test_a_malformed_trace_is_ignored(given, caplog):
    app, _ = guarded()
    caplog.set_level(logging.INFO, "rankfold.service")
    (response,) = answers(app, ("GET", "/health", {"headers": {"traceparent": given}}))
    assert response.status_code == 200
    assert "traceparent" not in response.headers
    assert "trace_id" not in json.loads(JsonLines().format(caplog.records[-1]))


def test_a_trace_that_is_given_twice_is_ignored_and_a_later_version_is_read():
    app, _ = guarded()
    twice = [("traceparent", f"00-{TRACE}-{SPAN}-01")] * 2
    later = [("traceparent", f"cc-{TRACE}-{SPAN}-01-what-is-new")]
    first, second = answers(
        app, ("GET", "/health", {"headers": twice}), ("GET", "/health", {"headers": later})
    )
    assert "traceparent" not in first.headers
    assert second.headers["traceparent"].startswith(f"00-{TRACE}-")
