"""Memory of this process, and of others."""

import json
import subprocess
import sys
from pathlib import Path


def resident_mb(process="self"):
    """Return what a process, named by its number, holds now, in MB."""
    return _status("VmRSS", process)


def own_mb(process="self"):
    """Return what of that is no file, in MB."""
    return _status("RssAnon", process)


def forget_peak():
    """Let `peak_mb` begin anew: what made the data is not to count."""
    Path("/proc/self/clear_refs").write_text("5")


def peak_mb():
    """Return what this process has held at the most since `forget_peak`, in MB."""
    return _status("VmHWM")


def _status(name, process="self"):
    status = Path(f"/proc/{process}/status").read_text()
    return int(status.split(f"{name}:")[1].split()[0]) / 1024


def of_a_process(script, n_points):
    """Return what a script prints as JSON when a new process runs it with --memory."""
    child = [sys.executable, script, "--memory", str(n_points)]
    answer = subprocess.run(child, check=True, capture_output=True, text=True)  # noqa: S603
    return json.loads(answer.stdout)
