"""Names and origins that could never match are refused."""

import pytest

from rankfold.errors import InputError
from rankfold.service import Settings


@pytest.mark.parametrize("host", ["*", "example.org", "Example.org", "a_b", "10.0.0.1", "[::1]"])
def test_hosts(host):
    assert Settings(hosts=(host,)).hosts == (host,)


@pytest.mark.parametrize(
    "host",
    ["example.org:8443", "https://example.org", "example.org/", "", "::1", "[::1]:80", "*.org"],
)
def test_a_host_is_a_name_alone(host):
    with pytest.raises(InputError, match="is no host") as caught:
        Settings(hosts=("localhost", host))
    assert repr(host) in str(caught.value)
    assert caught.value.argument == "hosts"


@pytest.mark.parametrize(
    "origin", ["*", "https://example.org", "http://localhost:3000", "http://[::1]:81"]
)
def test_origins(origin):
    assert Settings(origins=(origin,)).origins == (origin,)


@pytest.mark.parametrize(
    "origin",
    [
        "https://example.org/",
        "https://example.org/page",
        "https://Example.org",
        "https://example.org:443",
        "http://example.org:80",
        "example.org",
        "ftp://example.org",
        "",
    ],
)
def test_an_origin_is_as_browsers_send_it(origin):
    with pytest.raises(InputError, match="is no origin") as caught:
        Settings(origins=(origin,))
    assert repr(origin) in str(caught.value)
    assert caught.value.argument == "origins"
