"""Services under load: started as processes, and asked by wrk from as many connections at once."""

import json
import os
import re
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path
from time import sleep

SCRIPT = Path(__file__).with_name("load.lua")
ADDRESS = re.compile(r"http://[\w.]+:\d+")


def require_wrk():
    if not shutil.which("wrk"):
        raise SystemExit("this needs the load generator wrk; on Debian: apt-get install wrk")


@contextmanager
def process(command, log):
    """Start a service with one thread for each search, and yield the address that it prints."""
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("w") as file:
        running = subprocess.Popen(  # noqa: S603
            command, stdout=file, stderr=file, env={**os.environ, "OMP_NUM_THREADS": "1"}
        )
        try:
            yield _address(running, log)
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
