"""How many requests run, wait and are sent away."""

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from time import monotonic, sleep
from weakref import WeakSet

import pytest
from guarded_service import asking, connect, guarded, head
from running_service import running, wait_until

from rankfold import RANKERS
from rankfold.parallel import Stop, StoppedError, check_stopped
from rankfold.service import handlers
from rankfold.service.handlers import Served
from rankfold.service.limits import Limiter, Settings
from rankfold.service.problems import ProblemError
from rankfold.service.requests import QueriesRequest, QueryRequest


def gauge(client, name):
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"rankfold_{name} "))


async def nobody_runs(turns):
    async with asyncio.timeout(30):
        while turns.running:
            await asyncio.sleep(0.001)


def test_two_run_one_waits_the_next_is_sent_away():
    app, work = guarded(Settings(running=4, waiting=1))
    with running(app) as client, ThreadPoolExecutor(3) as threads:
        try:
            asked = [threads.submit(client.get, "/work") for _ in range(3)]
            assert work.begun.acquire(timeout=30)
            assert work.begun.acquire(timeout=30)
            wait_until(lambda: gauge(client, "waiting") == 1)
            assert gauge(client, "running") == 2
            refused = client.get("/work")
            assert (refused.status_code, refused.headers["Retry-After"]) == (503, "1")
            assert refused.headers["Content-Type"] == "application/problem+json"
            assert not work.begun.acquire(blocking=False)
            assert client.get("/health").json() == "ok"  # without a turn
            assert 'rankfold_rejected_total{reason="busy"} 1.0' in client.get("/metrics").text
        finally:
            work.let_go.set()
        assert [answer.result().json() for answer in asked] == ["done"] * 3
        assert (gauge(client, "running"), gauge(client, "waiting")) == (0, 0)


def test_what_takes_too_long_is_given_up_but_keeps_its_place():
    app, work = guarded(Settings(timeout=0.1, running=1, waiting=1))

    async def scene():
        async with asking(app) as client:
            late = await client.get("/work")
            assert (late.status_code, late.headers["Retry-After"]) == (503, "5")
            assert "0.1 seconds" in late.json()["detail"]
            assert app.state.limiter.running == 1
            waited = await client.get("/work")  # in vain: the place is taken
            assert waited.status_code == 503
            assert app.state.limiter.waiting == 0  # who is given up while waiting does not wait on
            work.let_go.set()
            await asyncio.to_thread(work.finished.acquire)
            await nobody_runs(app.state.limiter)
            assert (await client.get("/work")).json() == "done"

    try:
        asyncio.run(scene())
    finally:
        work.let_go.set()
    assert work.begun.acquire(blocking=False)
    assert work.begun.acquire(blocking=False)
    assert not work.begun.acquire(blocking=False)  # the one that waited has never begun


def test_who_leaves_does_not_wait_on():
    app, work = guarded(Settings(running=1, waiting=5))
    with running(app) as client, ThreadPoolExecutor(1) as threads:
        try:
            asked = threads.submit(client.get, "/work")
            assert work.begun.acquire(timeout=30)
            with connect(client) as connection:
                connection.sendall(head("GET /work HTTP/1.1"))
                wait_until(lambda: gauge(client, "waiting") == 1)
            wait_until(lambda: gauge(client, "waiting") == 0)
        finally:
            work.let_go.set()
        assert asked.result().json() == "done"
        assert not work.begun.acquire(blocking=False)


def test_a_turn_that_has_begun_is_finished_though_its_client_has_left():
    app, work = guarded(Settings(running=1))
    with running(app) as client:
        try:
            with connect(client) as connection:
                connection.sendall(head("GET /work HTTP/1.1"))
                assert work.begun.acquire(timeout=30)
            wait_until(lambda: 'route="/work",status="gone"' in client.get("/metrics").text)
            assert gauge(client, "running") == 1  # it keeps its place
        finally:
            work.let_go.set()
        assert work.finished.acquire(timeout=30)


@pytest.mark.parametrize("kind", ["bug", "late"])
def test_errors_come_back_and_leave_the_place(kind):
    app, _ = guarded(Settings(running=1, waiting=0))

    async def scene():
        async with asking(app) as client:
            for _ in range(3):
                response = await client.get(f"/fail/{kind}")
                assert response.status_code == 500
                await nobody_runs(app.state.limiter)

    asyncio.run(scene())


class Sent:
    """Stands for what a client has sent."""


async def ending_badly(waited):
    """Return what has become of a task."""
    (result,) = await asyncio.gather(waited, return_exceptions=True)
    return type(result)


@pytest.mark.parametrize("way", ["timeout", "gone"])
def test_nothing_is_kept_of_those_who_gave_up_waiting(way):
    turns = Limiter(Settings(running=1, waiting=2, timeout=0.05 if way == "timeout" else 30))
    let_go, kept = Event(), WeakSet()

    async def scene():
        first = asyncio.create_task(turns.run("heavy", let_go.wait, 30))
        while not turns.running:
            await asyncio.sleep(0)
        for _ in range(10):
            sent = Sent()
            kept.add(sent)
            waited = asyncio.create_task(turns.run("heavy", lambda sent=sent: sent))
            del sent
            await asyncio.sleep(0.001)
            if way == "gone":
                waited.cancel()
            await ending_badly(waited)
            del waited
        assert (turns.running, turns.waiting) == (1, 0)
        await asyncio.sleep(0.01)
        gc.collect()
        assert not kept
        let_go.set()
        await ending_badly(first)
        await nobody_runs(turns)
        assert await turns.run("heavy", lambda: "done") == "done"

    try:
        asyncio.run(scene())
    finally:
        let_go.set()


def test_a_change_that_has_begun_is_not_to_be_asked_for_again():
    turns, let_go = Limiter(Settings(running=1, timeout=0.1)), Event()

    async def scene():
        with pytest.raises(ProblemError) as begun:
            await turns.run("change", let_go.wait, 30)
        assert "still running" in str(begun.value)
        with pytest.raises(ProblemError) as waited:
            await turns.run("change", let_go.wait, 30)
        assert "given up" in str(waited.value)
        assert begun.value.headers is None
        assert waited.value.headers == {"Retry-After": "5"}
        let_go.set()
        await nobody_runs(turns)

    try:
        asyncio.run(scene())
    finally:
        let_go.set()


def test_never_more_are_at_work_than_allowed():
    turns, at_work, most = Limiter(Settings(running=4, waiting=100)), [], []

    def work():
        at_work.append(1)
        most.append(len(at_work))
        Event().wait(0.001)
        at_work.pop()

    async def scene():
        waiting = [asyncio.create_task(turns.run("light", work)) for _ in range(60)]
        await asyncio.sleep(0.005)
        for task in waiting[::3]:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        await nobody_runs(turns)

    asyncio.run(scene())
    assert len(most) >= 40
    assert max(most) == 2


def test_queries_that_were_given_up_are_not_answered_to_the_end(index, monkeypatch):
    turns = Limiter(Settings(running=1, timeout=0.1))
    let_go, asked, ends = Event(), [], []
    ask = handlers.ask

    def slow(served, query):
        asked.append(query)
        assert let_go.wait(30)
        return ask(served, query)

    def answered(*given):
        try:
            handlers.answer_all(*given)
        except StoppedError:
            ends.append("given up")

    monkeypatch.setattr(handlers, "ask", slow)
    served = Served("digits", index, False, False)

    async def scene():
        queries = [QueryRequest(ids=[1])] * 64
        await ending_badly(turns.run("heavy", answered, served, queries))
        assert turns.running == 1  # it keeps its place
        let_go.set()
        await nobody_runs(turns)

    try:
        asyncio.run(scene())
    finally:
        let_go.set()
    assert (len(asked), ends) == (1, ["given up"])


def stepping(began, most=30.0):
    """Work in steps, until it is stopped."""
    began.set()
    end = monotonic() + most
    while monotonic() < end:
        check_stopped()
        sleep(0.001)
    return "done"


@pytest.mark.parametrize(("many", "other"), [("heavy", "light"), ("light", "heavy")])
def test_places_are_kept_for_the_other_kind_of_work(many, other):
    turns, let_go = Limiter(Settings(running=4, waiting=10, share=60)), Event()

    async def scene():
        tasks = [asyncio.create_task(turns.run(many, let_go.wait, 30)) for _ in range(4)]
        while turns.running < 2:
            await asyncio.sleep(0)
        assert turns.waiting == 2  # places are free, but not for them
        for _ in range(5):
            assert await turns.run(other, lambda: "done") == "done"
        assert (turns.running, turns.waiting) == (2, 2)
        let_go.set()
        assert await asyncio.gather(*tasks) == [True] * 4

    try:
        asyncio.run(scene())
    finally:
        let_go.set()


def test_who_has_had_its_share_gives_way_to_those_who_wait():
    turns, began = Limiter(Settings(running=2, share=0.05)), Event()

    async def scene():
        long = asyncio.create_task(turns.run("heavy", stepping, began))
        await asyncio.to_thread(began.wait, 30)
        await asyncio.sleep(0.2)
        assert not long.done()  # nobody waits
        assert await turns.run("heavy", lambda: "done") == "done"
        with pytest.raises(ProblemError) as stopped:
            await long
        assert (stopped.value.status, stopped.value.reason) == (503, "share")
        assert "0.05 seconds while others waited" in stopped.value.detail
        await nobody_runs(turns)

    asyncio.run(scene())


def test_long_work_does_not_hold_up_a_change_and_never_stops_one():
    turns, began = Limiter(Settings(running=4, share=0.05)), Event()

    async def scene():
        long = asyncio.create_task(turns.run("heavy", stepping, began))
        await asyncio.to_thread(began.wait, 30)
        change = asyncio.create_task(turns.run("change", stepping, Event(), 0.3))
        with pytest.raises(ProblemError):
            await long
        waiting = [asyncio.create_task(turns.run("heavy", lambda: "done")) for _ in range(3)]
        assert await asyncio.gather(*waiting) == ["done"] * 3
        assert await change == "done"

    asyncio.run(scene())


@pytest.mark.parametrize("way", ["timeout", "gone"])
def test_work_that_nobody_waits_for_is_stopped(way):
    turns, began = Limiter(Settings(running=2, timeout=0.1 if way == "timeout" else 30)), Event()

    async def scene():
        long = asyncio.create_task(turns.run("heavy", stepping, began))
        await asyncio.to_thread(began.wait, 30)
        if way == "gone":
            long.cancel()
        await ending_badly(long)
        async with asyncio.timeout(10):
            await nobody_runs(turns)

    asyncio.run(scene())


@pytest.mark.parametrize("method", sorted(RANKERS))
def test_whatever_is_asked_a_stopped_query_leaves_nothing_behind(index, method):
    served, stop = Served("digits", index, False, False), Stop()
    queries = [QueryRequest(ids=[1], method=method)]
    stop.set()
    with stop.stoppable(), pytest.raises(StoppedError):
        handlers.answer_all(served, queries)
    assert len(handlers.answer_all(served, queries)[0]["results"]) == 10


@pytest.mark.parametrize(
    ("method", "parameters"),
    [
        ("ran", {"solver": "region", "budget": None}),
        ("ran", {"solver": "cg"}),
        ("ran", {"max_iter": 20, "gamma": "shared", "guard": False}),
        ("manifold", {"solver": "iteration"}),
        ("lcdp", {}),
        ("tensor", {}),
        ("self_diffusion", {}),
        ("transduction", {}),
    ],
)
@pytest.mark.filterwarnings("ignore:1 of 1 queries ended at max_iter")
def test_methods_look_at_the_flag_while_they_work(index, method, parameters):
    answered, stop = index.query(1, method=method, top=5, **parameters), Stop()
    stop.set()
    with stop.stoppable(), pytest.raises(StoppedError):
        index.query(1, method=method, top=5, **parameters)
    assert index.query(1, method=method, top=5, **parameters).ids == answered.ids


def test_queries_that_say_little_are_light():
    assert QueriesRequest(queries=[QueryRequest(ids=[1])]).is_light
    assert QueriesRequest(
        queries=[QueryRequest(ids=[1], parameters={"budget": 500, "fusion": 0.5})]
    ).is_light
    assert QueriesRequest(queries=[QueryRequest(ids=[1], method="distance", top=100)] * 8).is_light
    for heavy in (
        {"method": "lcdp"},
        {"parameters": {"budget": "proven"}},
        {"parameters": {"budget": 100_000}},
        {"parameters": {"smoothness": 1.0}},
        {"parameters": {"max_iter": 2}},
        {"top": 1000},
        {"offset": 1000},
        {"ids": list(range(30))},
        {"where": "a < 1"},
    ):
        assert not QueriesRequest(queries=[QueryRequest(**{"ids": [1], **heavy})]).is_light
    assert not QueriesRequest(queries=[QueryRequest(ids=[1])] * 9).is_light
