"""The Compose file and the unit of systemd, without Docker and without systemd as process 1."""

import re
import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml

from rankfold.cli.serve import serve
from rankfold.service.limits import KEY_VARIABLE
from rankfold.service.server import GRACE

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def compose():
    (service,) = yaml.safe_load((ROOT / "compose.yaml").read_text())["services"].values()
    return service


@pytest.fixture(scope="module")
def unit():
    parser = ConfigParser(interpolation=None)
    parser.optionxform = str
    parser.read_string((ROOT / "rankfold.service").read_text())
    return parser


def test_compose_starts_what_the_image_understands(compose):
    image = (ROOT / compose["build"] / "Dockerfile").read_text()
    words = re.search(r'^ENTRYPOINT \["rankfold", "serve", (.*)\]$', image, re.MULTILINE)[1]
    (index,) = compose["command"]
    default = re.fullmatch(r"\$\{RANKFOLD_INDEX:-(.+)\}", index)[1]
    given = [word.strip(' "') for word in words.split(",")] + [default]
    known = serve.make_context("serve", given).params
    assert known["names"] == ("index",)
    (port,) = compose["ports"]
    assert port == f"127.0.0.1:{known['port']}:{known['port']}"
    (volume,) = compose["volumes"]
    assert f"VOLUME {volume.partition(':')[2]}\n" in image
    assert int(compose["stop_grace_period"].removesuffix("s")) > GRACE


def test_compose_asks_for_a_key(compose):
    assert compose["environment"].keys() == {KEY_VARIABLE}
    assert compose["environment"][KEY_VARIABLE].startswith(f"${{{KEY_VARIABLE}:?")


def test_the_unit_starts_what_is_understood(unit):
    service = unit["Service"]
    program, command, *words = shlex.split(service["ExecStart"])
    assert (Path(program).name, command) == ("rankfold", "serve")
    known = serve.make_context("serve", words).params
    assert (known["host"], known["names"]) == ("127.0.0.1", ("index",))
    assert int(service["TimeoutStopSec"]) > GRACE
    text = (ROOT / "rankfold.service").read_text()
    assert f"{KEY_VARIABLE}=" in text
    assert service["EnvironmentFile"] in text.partition("[Unit]")[0]


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="there is no systemd")
def test_systemd_takes_the_unit(tmp_path):
    program = tmp_path / "rankfold"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    text = (ROOT / "rankfold.service").read_text()
    copy = tmp_path / "rankfold.service"
    copy.write_text(text.replace("/opt/rankfold/bin/rankfold", str(program)))
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(copy)],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    said = [line for line in done.stderr.splitlines() if "rankfold.service" in line]
    assert (done.returncode, said) == (0, [])
