"""Services under load: started as processes, and asked by wrk from as many connections at once."""

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import NamedTuple

SCRIPT = Path(__file__).with_name("load.lua")
ADDRESS = re.compile(r"http://[\w.]+:\d+")


def require_wrk():
    if not shutil.which("wrk"):
        raise SystemExit("this needs the load generator wrk; on Debian: apt-get install wrk")


class Service(NamedTuple):
    """A process and the address that it printed."""

    address: str
    number: int


@contextmanager
def process(command, log, **variables):
    """Start a service with one thread for each search; yield it when it listens."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", **variables}
        running = subprocess.Popen(command, stdout=file, stderr=file, env=environment)  # noqa: S603
        try:
            yield Service(_address(running, log), running.pid)
        finally:
            running.terminate()
            running.wait()


def _address(running, log):
    while not (found := ADDRESS.search(log.read_text())):
        if running.poll() is not None:
            raise SystemExit(f"the service ended:\n{log.read_text()}")
        sleep(0.1)
    return found[0]


def load(url, connections, seconds, n_points, n_queries, top, method):
    """Ask for some seconds; return what wrk measured."""
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
    command += ["-s", str(SCRIPT), url, "--", str(n_points), str(n_queries), str(top), method]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(done.stdout.splitlines()[-1])
