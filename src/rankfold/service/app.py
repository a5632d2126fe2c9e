"""The service as an ASGI app."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from rankfold.databases import Collection
from rankfold.datasets import load
from rankfold.errors import InputError
from rankfold.index import Index
from rankfold.service import routes
from rankfold.service.handlers import Served
from rankfold.service.limits import Settings
from rankfold.service.middleware import protect
from rankfold.service.problems import describe
from rankfold.service.reference import reference_router
from rankfold.service.responses import Health
from rankfold.service.routes import page_router

EXAMPLES = {"two-moons": ("moons", "moon"), "three-rings": ("rings", "ring")}
"""Names of the examples, the data set of each, and what its labels are called."""


def build_examples() -> dict[str, Index]:
    """Build them; they are gone when they are closed."""
    return {name: _build(*example) for name, example in EXAMPLES.items()}


def _build(dataset: str, column: str) -> Index:
    data = load(dataset)
    return Index.build(data.X, payload={column: data.labels})


DESCRIPTION = """\
Rank by the shape of the data. Errors are problems (RFC 9457) that name the field. A change is on
disk when it is answered. Where a key is set, every request needs it but those for health, for this
description and for the page."""


def create_app(
    indexes: Mapping[str, Index | Collection], settings: Settings | None = None
) -> FastAPI:
    """Return the service over some indexes and the examples.

    Parameters
    ----------
    indexes : dict of str to Index or Collection
        By the names under which they are served. They stay open when the app ends.
    settings : Settings, optional
        Limits and keys; the defaults without.
    """
    settings = settings or Settings()
    for name in EXAMPLES:
        if name in indexes:
            raise InputError(f"{name!r} is the name of an example; serve the index under another.")
    examples = build_examples()
    writable = settings.api_key is not None
    own = [
        Served(name, index, False, writable and index.writable) for name, index in indexes.items()
    ]
    given = [Served(name, index, True, False) for name, index in examples.items()]

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        for index in examples.values():
            index.close()

    app = FastAPI(
        title="rankfold",
        version=version("rankfold"),
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        lifespan=lifespan,
    )
    app.state.served = {served.name: served for served in (*own, *given)}
    protect(app, settings, {**indexes, **examples})
    for router in (routes.read_router, routes.write_router, page_router(), reference_router()):
        app.include_router(router)

    @app.head("/health", include_in_schema=False)
    @app.get("/health", response_model=Health, tags=["service"])
    async def health() -> dict[str, str]:
        """Tell that the service answers."""
        return {"status": "ok", "version": app.version}

    describe(app)
    return app
