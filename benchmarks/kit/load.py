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
from urllib.request import urlopen

SCRIPT = Path(__file__).with_name("load.lua")
ADDRESS = re.compile(r"http://[\w.]+:\d+")
UNDER_WAY = re.compile(r"^rankfold_(?:running|waiting) (\S+)$", re.MULTILINE)


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


def load(url, connections, seconds, n_points, n_queries, fields):
    """Ask for some seconds; return what wrk measured.

    Every request has so many queries, each by one of the points and with the same other fields.
    """
    command = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s"]
    command += ["-s", str(SCRIPT), url, "--", str(n_points), str(n_queries), json.dumps(fields)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603
    _wait_for_quiet(url)
    return json.loads(done.stdout.splitlines()[-1])


def _wait_for_quiet(url):
    """Wait until a service has done what wrk asked for last, without waiting for the answer."""
    address = ADDRESS.match(url)[0]
    while True:
        with urlopen(f"{address}/metrics") as response:  # noqa: S310, of this machine
            metrics = response.read().decode()
        if all(float(count) == 0 for count in UNDER_WAY.findall(metrics)):
            return
        sleep(0.1)
