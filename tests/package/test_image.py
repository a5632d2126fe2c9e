"""The Dockerfile, without Docker: its files suffice, and its commands are understood."""

import json
import re
import shutil
import socket
import subprocess
import sys

from package.environments import ROOT, UV, done
from package.test_contents import in_wheel
from serving import serving

from rankfold.cli.serve import serve

TEXT = (ROOT / "Dockerfile").read_text().replace("\\\n", "")


def words_of(instruction):
    """Return the words of an instruction that is a list of them."""
    return json.loads(re.search(rf"^\s*{instruction}.*?(\[.*\])$", TEXT, re.MULTILINE)[1])


def test_what_docker_is_sent_builds_the_same_wheel(wheel, tmp_path):
    lines = (ROOT / ".dockerignore").read_text().splitlines()
    for name in (line.removeprefix("!") for line in lines if line.startswith("!")):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, tmp_path / name)
    done(UV, "build", "--quiet", "--wheel", "--out-dir", tmp_path / "made", tmp_path)
    assert in_wheel(next((tmp_path / "made").glob("*.whl"))) == in_wheel(wheel)


def test_the_entry_point_is_understood():
    name, command, *words = words_of("ENTRYPOINT")
    assert (name, command) == ("rankfold", "serve")
    known = serve.make_context("serve", [*words, "digits"]).params
    assert (known["host"], known["names"]) == ("0.0.0.0", ("digits",))  # noqa: S104
    assert re.search(r"^EXPOSE (\d+)$", TEXT, re.MULTILINE)[1] == str(known["port"])


def test_its_extras_are_extras():
    extras = re.search(r"^ARG EXTRAS=(\S+)$", TEXT, re.MULTILINE)[1].split(",")
    offered = (ROOT / "pyproject.toml").read_text()
    assert [extra for extra in extras if f"\n{extra} = [" not in offered] == []


def test_health_is_seen():
    name, *words = words_of("HEALTHCHECK")
    assert name == "python"

    def status(port):
        asked = [word.replace("8765", str(port)) for word in words]
        return subprocess.run([sys.executable, *asked], check=False, capture_output=True).returncode

    with serving() as service:
        assert status(service.address.split(":")[-1]) == 0
    with socket.socket() as taken:  # a port on which nobody listens
        taken.bind(("127.0.0.1", 0))
        assert status(taken.getsockname()[1]) == 1
