"""What may happen in the middle: a worker dies, a user stops it, a scheduler is elsewhere."""

import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import psutil
import pytest
from cluster.conftest import MANY, check_same_index
from distributed import LocalCluster

from rankfold.cluster import build_index, client, rank_many
from rankfold.cluster.build import forget
from rankfold.cluster.client import working
from rankfold.errors import InputError


def building(shards, path):
    """Build an index by the command, in a process group of its own."""
    command = "from rankfold.cli import main; main()"
    words = ["cluster", "build", shards, "-o", path, "--workers", "2"]
    return subprocess.Popen(
        [sys.executable, "-c", command, *map(str, words)],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # as a terminal does: Ctrl-C goes to all of its processes
    )


def wait_for(folder, pattern, seconds=60.0):
    """Wait until a file is there."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if next(folder.glob(pattern), None) is not None:
            return True
        time.sleep(0.002)
    return False


@pytest.mark.parametrize("stage", ["points-*", pytest.param("rows-*", marks=pytest.mark.slow)])
def test_the_result_is_the_same_when_a_worker_is_killed(stage, client, many, tmp_path):
    before, killed = client.run(os.getpid), []

    def kill():
        if wait_for(tmp_path, f".rankfold-*/{stage}.npy"):
            killed.append(next(iter(before.values())))
            os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    build_index(many / "points.npy", tmp_path / "made", scheduler=client, **MANY)
    killer.join()
    client.wait_for_workers(2)
    assert killed
    assert killed[0] not in client.run(os.getpid).values()
    check_same_index(tmp_path / "made", many / "whole")


@pytest.mark.slow
def test_few_files_are_open_at_once(tmp_path, many):
    resource = pytest.importorskip("resource")
    code = (
        "import resource, sys; from pathlib import Path\n"
        "from distributed import Client\n"
        "from rankfold.cluster import build, build_index\n"
        "build.PART_NUMBERS, build.GROUP_NUMBERS = 8 * 100, 8 * 5000\n"
        "build.BLOCK_ROWS = build.FEWEST_ROWS = 100\n"
        "options = {'n_neighbors': 3, 'recall': 0.95, 'layout': 'none'}\n"
        "with Client(processes=False, n_workers=1, dashboard_address='127.0.0.1:0') as client:\n"
        "    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)\n"
        "    resource.setrlimit(resource.RLIMIT_NOFILE, (150, most))\n"
        "    build_index(sys.argv[1], sys.argv[2], scheduler=client, **options)\n"
    )
    assert resource.getrlimit(resource.RLIMIT_NOFILE)[1] > 150
    words = [sys.executable, "-c", code, many / "points.npy", tmp_path / "made"]
    done = subprocess.run(list(map(str, words)), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    check_same_index(tmp_path / "made", many / "whole")


@pytest.mark.slow
def test_a_task_that_kills_every_worker_is_given_up(client, monkeypatch):
    monkeypatch.setattr(client.cluster.scheduler, "allowed_failures", 0)
    with (
        working(client, None, forget, progress=False) as work,
        pytest.raises(InputError, match="lost one worker after the other"),
    ):
        work.run("ends", os._exit, [(1,)])


@pytest.mark.slow
def test_a_scheduler_that_goes_away_is_named(monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 1)
    with LocalCluster(n_workers=1, dashboard_address="127.0.0.1:0") as cluster:
        closing = threading.Timer(3.0, cluster.close)
        closing.start()
        with (
            working(cluster.scheduler_address, None, forget, progress=False) as work,
            pytest.raises(InputError, match="the Dask scheduler has gone"),
        ):
            work.run("naps", time.sleep, [(0.2,)] * 1000)
        closing.join()


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals")
def test_ctrl_c_leaves_nothing(shards, tmp_path):
    X = np.random.default_rng(0).normal(size=(60_000, 24)).astype(np.float32)
    parts = shards("npy", X)
    running = building(parts.shards, tmp_path / "made")
    try:
        assert wait_for(tmp_path, ".rankfold-*/points.npy")
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130, errors
    assert errors.splitlines()[-1] == "Stopped: nothing is half-written."
    assert "Traceback" not in errors
    assert [path.name for path in tmp_path.iterdir()] == ["npy"]


@pytest.mark.slow
def test_ctrl_c_while_workers_start_says_no_more_than_that(shards, X, tmp_path):
    running = building(shards("npy", X).shards, tmp_path / "made")
    try:
        while not psutil.Process(running.pid).children() and running.poll() is None:
            time.sleep(0.01)
        os.killpg(running.pid, signal.SIGINT)
        _, errors = running.communicate(timeout=120)
    finally:
        running.kill()
    assert errors == "Stopped: nothing is half-written.\n"
    assert running.returncode == 130
    assert [path.name for path in tmp_path.iterdir()] == ["npy"]


def test_work_is_done_by_a_cluster_that_is_there(client, X, shards, whole, tmp_path):
    parts, address = shards("npy", X[:300]), client.scheduler.address
    (tmp_path / "scratch").mkdir()
    options = {"scheduler": address, "scratch": tmp_path / "scratch", "progress": True}
    build_index(parts.shards, tmp_path / "made", **options)
    rankings = rank_many(tmp_path / "made", [0, 1], scheduler=address, top=3)
    assert len(rankings) == 2
    assert not list((tmp_path / "scratch").iterdir())
    assert client.submit(len, "it still works").result() == 14
    check_same_index(tmp_path / "made", whole(X[:300], parts))


def test_a_scheduler_that_is_not_there_is_named(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    parts = shards("npy", np.eye(4, dtype=np.float32))
    for address in ("tcp://127.0.0.1:9", "nonsense://x", 7):
        with pytest.raises(InputError, match="there is no Dask scheduler at"):
            build_index(parts.shards, tmp_path / "made", scheduler=address)


def test_a_cluster_without_workers_is_named(shards, tmp_path, monkeypatch):
    monkeypatch.setattr(client, "PATIENCE", 0.5)
    parts = shards("npy", np.eye(4, dtype=np.float32))
    with (
        LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
        pytest.raises(InputError, match="has no workers"),
    ):
        build_index(parts.shards, tmp_path / "made", scheduler=cluster.scheduler_address)
