"""How many requests run, wait and are sent away."""

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest
from guarded_service import asking, connect, guarded, head
from running_service import running

from rankfold.service.settings import Settings


def gauge(client, name):
    lines = client.get("/metrics").text.splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"rankfold_{name} "))


def test_two_run_one_waits_the_next_is_sent_away():
    app, work = guarded(Settings(running=2, waiting=1))
    with running(app) as client, ThreadPoolExecutor(3) as threads:
        try:
            asked = [threads.submit(client.get, "/work") for _ in range(3)]
            assert work.begun.acquire(timeout=30)
            assert work.begun.acquire(timeout=30)
            while gauge(client, "waiting") < 1:
                pass
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
            assert app.state.turns.running == 1
            waited = await client.get("/work")  # in vain: the place is taken
            assert waited.status_code == 503
            assert app.state.turns.waiting == 0  # who is given up while waiting does not wait on
            work.let_go.set()
            await asyncio.to_thread(work.finished.acquire)
            while app.state.turns.running:
                await asyncio.sleep(0)
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
                while gauge(client, "waiting") < 1:
                    pass
            while gauge(client, "waiting"):
                pass
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
            while 'route="/work",status="gone"' not in client.get("/metrics").text:
                pass
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
                while app.state.turns.running:
                    await asyncio.sleep(0)

    asyncio.run(scene())
