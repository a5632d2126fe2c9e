"""Everything around the routes, put together."""

from __future__ import annotations

from collections.abc import Mapping, Sized

from fastapi import Depends, FastAPI, Response
from starlette.responses import PlainTextResponse

from rankfold.service.guard import Guard
from rankfold.service.keys import Gate, reading_key
from rankfold.service.metrics import Metrics
from rankfold.service.origins import Origins
from rankfold.service.problems import Shield, answer_problems
from rankfold.service.recording import Recorder
from rankfold.service.settings import Settings
from rankfold.service.turns import Turns


def protect(app: FastAPI, settings: Settings, indexes: Mapping[str, Sized]) -> None:
    """Put limits, keys, problems, logs and metrics around an app, and the route ``/metrics``.

    Parameters
    ----------
    app : FastAPI
        ``settings``, ``turns`` and ``metrics`` are then found in its ``state``.
    settings : Settings
    indexes : mapping of names to indexes
        For the metrics.
    """
    turns = Turns(settings)
    metrics = Metrics(turns, indexes)
    app.state.settings, app.state.turns, app.state.metrics = settings, turns, metrics
    answer_problems(app)
    # The last one added is the first to see a request.
    app.add_middleware(Guard, settings=settings)
    app.add_middleware(Gate, settings=settings)
    app.add_middleware(Shield)
    if settings.origins:
        app.add_middleware(
            Origins,
            allow_origins=settings.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-ID"],
            expose_headers=["Retry-After", "X-Request-ID"],
        )
    app.add_middleware(Recorder, metrics=metrics)
    _add_metrics(app, metrics)


def _add_metrics(app: FastAPI, metrics: Metrics) -> None:
    @app.get(
        "/metrics",
        tags=["service"],
        dependencies=[Depends(reading_key)],
        response_class=PlainTextResponse,
    )
    async def read_metrics() -> Response:
        """Measurements of the service, as Prometheus reads them."""
        return Response(await metrics.text(), media_type=metrics.content_type)
