"""A small app behind the protection of the service, for what its own routes would hide."""

import socket
from threading import Event, Semaphore
from typing import Annotated

import httpx
from fastapi import Body, Depends, FastAPI
from pydantic import BaseModel

from rankfold.check import about, check_count
from rankfold.errors import InputError, StorageError
from rankfold.service.limits import Limited, Settings
from rankfold.service.middleware import protect, writing_key

JSON = {"Content-Type": "application/json"}


class Item(BaseModel):
    name: str | int
    top: int = 1


class Items(BaseModel):
    items: list[Item]


class Work:
    """Work that tells when it begins, and lasts until it is let go."""

    def __init__(self):
        self.begun, self.let_go = Semaphore(0), Event()
        self.finished = Semaphore(0)

    def __call__(self):
        self.begun.release()
        assert self.let_go.wait(60)
        self.finished.release()
        return "done"


def guarded(settings=None, indexes=None):
    """Return the app and the work that its route /work does."""
    app, work = FastAPI(docs_url=None, redoc_url=None), Work()
    protect(app, settings or Settings(), indexes or {})

    @app.get("/health")
    async def health():
        return "ok"

    @app.post("/length")
    async def length(body: Annotated[dict | list, Body()]):
        return len(body)

    @app.post("/items")
    async def items(body: Items, limit: int = 0):
        for number, item in enumerate(body.items):
            with about(f"items[{number}]"):
                check_count(item.top, "top")
                if item.name == "odd":
                    raise InputError("odd names are not allowed")
        return limit

    @app.get("/work")
    async def do_work(turn: Limited):
        return await turn.run("heavy", work)

    @app.get("/fail/{kind}")
    async def fail(kind: str, turn: Limited):
        def fails():
            raise {
                "bug": ZeroDivisionError("secret words"),
                "late": TimeoutError("secret words"),
                "storage": StorageError("'/secret/folder' is damaged"),
                "input": InputError("this cannot be used"),
            }[kind]

        await turn.run("heavy", fails)

    @app.post("/change", dependencies=[Depends(writing_key)])
    async def change():
        return "changed"

    return app, work


def asking(app):
    """Return an asynchronous client that needs no network."""
    transport = httpx.ASGITransport(app)
    return httpx.AsyncClient(transport=transport, base_url="http://localhost")


def connect(client):
    """Return a bare connection to the server of a client."""
    return socket.create_connection((client.base_url.host, client.base_url.port), timeout=30)


def head(*lines):
    """Return the beginning of a request, with an empty line at its end."""
    return "\r\n".join([*lines, "Host: localhost", "", ""]).encode()


def everything(connection):
    """Return all that comes until the server closes the connection."""
    received = b""
    while more := connection.recv(65536):
        received += more
    return received.decode()
