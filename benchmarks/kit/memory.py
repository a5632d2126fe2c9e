"""Memory of this process."""

import json
import resource
import subprocess
import sys
from pathlib import Path


def resident_mb():
    """Return what this process holds now, in MB."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def peak_mb():
    """Return what this process has held at the most, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def of_a_process(script, n_points):
    """Return what a script prints as JSON when a new process runs it with --memory."""
    child = [sys.executable, script, "--memory", str(n_points)]
    answer = subprocess.run(child, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(answer.stdout)
