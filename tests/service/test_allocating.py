"""Memory that is freed leaves the process."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = """
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from rankfold.service.server import keep_memory_together

def held():
    return int(Path("/proc/self/status").read_text().split("RssAnon:")[1].split()[0]) / 1024

def work(size):
    kept = [bytearray(b"x" * size) for _ in range(20)]
    kept.append(bytearray(100))
    return kept[-1]

if __name__ == "__main__":
    if not keep_memory_together():
        raise SystemExit(3)
    with ThreadPoolExecutor(4) as threads:
        before = held()
        kept = list(threads.map(work, [2**19, 2**20, 2**21, 2**22] * 3))
        print(held() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs /proc")
def test_freed_arrays_leave_the_process(tmp_path):
    script = tmp_path / "script.py"
    Path(script).write_text(SCRIPT)
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=120)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc")
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 10
