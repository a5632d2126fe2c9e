"""Who may read and who may write."""

import asyncio

import pytest
from guarded_service import asking, guarded
from running_service import BEARER, KEY

from rankfold import InputError
from rankfold.service.limits import KEY_VARIABLE, Settings


def answer(settings, method, path, **options):
    async def ask():
        app, work = guarded(settings)
        work.let_go.set()
        async with asking(app) as client:
            return await client.request(method, path, **options)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    "authorization",
    [None, "", "Bearer", f"Bearer {KEY}x", f"Bearer {KEY[:-1]}", f"Basic {KEY}", KEY, "Bearer é"],
)
@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/work"), ("POST", "/change"), ("GET", "/metrics"), ("GET", "/nothing")],
)
def test_nothing_goes_without_the_key(authorization, method, path):
    headers = {} if authorization is None else {"Authorization": authorization.encode()}
    response = answer(Settings(api_key=KEY), method, path, headers=headers)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert KEY not in response.text


@pytest.mark.parametrize("kind", ["Bearer", "bearer"])
@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/work"), ("POST", "/change"), ("GET", "/metrics")]
)
def test_the_key_opens_everything(kind, method, path):
    headers = {"Authorization": f"{kind} {KEY}"}
    assert answer(Settings(api_key=KEY), method, path, headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/health", "/openapi.json"])
def test_some_things_are_always_open(path):
    assert answer(Settings(api_key=KEY), "GET", path).status_code == 200


@pytest.mark.parametrize("headers", [{}, BEARER])
def test_without_a_key_nobody_writes_and_all_read(headers):
    assert answer(Settings(), "GET", "/work", headers=headers).status_code == 200
    refused = answer(Settings(), "POST", "/change", headers=headers)
    assert refused.status_code == 403
    assert KEY_VARIABLE in refused.json()["detail"]


def test_the_description_names_the_key():
    described = answer(Settings(), "GET", "/openapi.json").json()
    assert described["components"]["securitySchemes"]["key"]["scheme"] == "bearer"
    assert described["paths"]["/change"]["post"]["security"] == [{"key": []}]
    assert described["paths"]["/metrics"]["get"]["security"] == [{"key": []}]
    assert "security" not in described["paths"]["/health"]["get"]


@pytest.mark.parametrize("key", ["", "short", "x" * 15, "with a space in it", "not-ascii-é-éééé"])
def test_weak_keys_are_refused(monkeypatch, key):
    monkeypatch.setenv(KEY_VARIABLE, key)
    with pytest.raises(InputError, match=KEY_VARIABLE) as caught:
        Settings.from_environment()
    assert not key or key not in str(caught.value)


def test_the_key_comes_from_the_environment(monkeypatch):
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert Settings.from_environment().api_key is None
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    settings = Settings.from_environment(waiting=5)
    assert (settings.api_key, settings.waiting) == (KEY, 5)
    assert KEY not in repr(settings)


@pytest.mark.parametrize("limit", [{"bodies": 0}, {"timeout": 0}, {"running": 0}, {"waiting": -1}])
def test_limits_are_checked(limit):
    (name,) = limit
    with pytest.raises(InputError, match=name):
        Settings(**limit)
