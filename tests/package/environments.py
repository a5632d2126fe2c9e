"""Environments that hold the built wheel and nothing of this repository."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TESTS = ROOT / "tests"
USES = TESTS / "package" / "uses"
UV = Path(sys.executable).with_name("uv")


def done(*words, **options):
    """Run a command that must go well, and return what it prints."""
    result = subprocess.run(
        [str(word) for word in words], capture_output=True, text=True, check=False, **options
    )
    assert result.returncode == 0, f"{words}\n{result.stdout}\n{result.stderr}"
    return result.stdout


class Environment:
    """An empty environment with the wheel, and a folder to work in that is far from this one."""

    def __init__(self, folder, wheel, extra=None, lowest=False):
        self.extra = extra
        self.python = folder / "environment" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir()
        done(UV, "venv", "--quiet", "--python", sys.executable, folder / "environment")
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        limits = ["--constraints", self._lowest(folder)] if lowest else []
        done(UV, "pip", "install", "--quiet", "--python", self.python, wanted, *limits)

    def run(self, *words, **variables):
        """Run the Python of the environment, or a script beside it, and return what it prints."""
        hidden = ("PYTHONPATH", "RANKFOLD_DATA", "VIRTUAL_ENV")
        plain = {name: value for name, value in os.environ.items() if name not in hidden}
        home = {"XDG_CACHE_HOME": str(self.work / "cache"), "MPLBACKEND": "agg"}
        return done(*words, cwd=self.work, env={**plain, **home, **variables})

    def _lowest(self, folder):
        """Write down the lowest versions that pyproject.toml allows."""
        limits = folder / "lowest.txt"
        chosen = ["--extra", self.extra] if self.extra else []
        words = ["--resolution", "lowest-direct", "--python", self.python, *chosen]
        done(UV, "pip", "compile", "--quiet", *words, ROOT / "pyproject.toml", "-o", limits)
        return limits
