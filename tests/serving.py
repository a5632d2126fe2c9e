"""The service as users run it: a process of its own."""

import os
import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryFile
from time import monotonic, sleep
from typing import NamedTuple

PATIENCE = 120
"""Seconds until a process must have said where it listens, or have ended when asked to."""


class Service(NamedTuple):
    address: str
    process: subprocess.Popen


@contextmanager
def serving(*words, **variables):
    """Run ``rankfold serve`` on a free port; end it as a supervisor would."""
    script = Path(sys.executable).with_name("rankfold")
    with TemporaryFile("w+") as log:
        process = subprocess.Popen(
            [script, "serve", *map(str, words), "--port", "0"],
            env={**os.environ, **variables},
            stdout=log,
            stderr=log,
        )
        try:
            yield Service(_address(process, log), process)
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def _address(process, log):
    """Wait for the line that says where the page is."""
    give_up = monotonic() + PATIENCE
    while monotonic() < give_up:
        ended = process.poll() is not None
        log.seek(0)
        printed = log.read()
        found = re.search(r"http://[\w.\[\]:-]+:\d+", printed)
        if found:
            return found[0]
        if ended:
            raise AssertionError(f"the service ended with {process.returncode}:\n{printed}")
        sleep(0.05)
    raise AssertionError(f"the service did not say where it listens:\n{printed}")
