"""Asks a service (`rankfold serve`) from Python, with or without asyncio."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, NamedTuple, Self
from urllib.parse import quote, urlencode

import numpy as np

from rankfold.check import check_count
from rankfold.errors import InputError, MissingExtraError, RankfoldError, UnreachableError

try:
    import httpx
except ImportError as error:
    raise MissingExtraError("httpx", "client") from error

LONGEST_WAIT = 30.0
"""Seconds; a service that asks for more is not waited for so long."""

REFUSED = frozenset([400, 401, 403, 404, 409, 413, 422])
"""Answers that say what is wrong with a request; asking again would not help."""


class Hit(NamedTuple):
    """One result: a point, its score, the parts that this is made of, and its payload.

    ``lists`` says what each list has contributed where several were fused, as of words and shape;
    ``proven`` whether the score is proven to be ``min_score`` at least, where that was given.
    """

    id: int | str
    score: float
    shape: float | None
    distance: float | None
    payload: dict[str, Any]
    lists: dict[str, Any] | None = None
    proven: bool | None = None


@dataclass(frozen=True)
class Reranked:
    """A candidate: its place among those that were sent, its score, and its id where it has one."""

    index: int
    relevance_score: float
    id: int | str | None = None


@dataclass(frozen=True, eq=False)
class Answer:
    """The answer to a query, best first.

    Parameters
    ----------
    hits : list of Hit
    certified : bool
        Whether it is proven that no other point scores higher.
    bound : float
        No score is further off than this.
    details : dict
        All that the service says besides, such as ``solver`` and ``stopped``.
    """

    hits: list[Hit]
    certified: bool
    bound: float
    details: dict[str, Any]

    @property
    def ids(self) -> list[int | str]:
        """The ids of the results."""
        return [hit.id for hit in self.hits]

    def __len__(self) -> int:
        return len(self.hits)

    def __iter__(self) -> Iterator[Hit]:
        return iter(self.hits)


@dataclass(frozen=True)
class _Call:
    """One request, and what becomes of its answer."""

    verb: str
    path: str
    body: Any
    read: Callable[[Any], Any]
    changes: bool = False
    """Whether a second request could make the change a second time."""


class _Calls:
    """What can be asked; a client sends each call, and returns what is read from its answer."""

    def __init__(
        self,
        address: str,
        key: str | None,
        timeout: float,
        retries: int,
        traceparent: Callable[[], str | None] | None,
    ) -> None:
        headers = {} if key is None else {"Authorization": f"Bearer {key}"}
        self._traceparent = traceparent
        self._options: dict[str, Any] = {
            "base_url": address, "headers": headers, "timeout": timeout
        }  # fmt: skip
        self._address, self._retries = address, check_count(retries, "retries", least=0)

    def _health(self) -> _Call:
        return _Call("GET", "/health", None, lambda found: found)

    def _metrics(self) -> _Call:
        return _Call("GET", "/metrics", None, lambda found: found)

    def _indexes(self) -> _Call:
        return _Call("GET", "/v1/indexes", None, lambda found: found["indexes"])

    def _info(self, index: str) -> _Call:
        return _Call("GET", _path(index), None, lambda found: found)

    def _query(self, index: str, queries: Sequence[dict[str, Any]]) -> _Call:
        return _Call("POST", _path(index, "query"), _plain({"queries": queries}), _answers)

    def _post(
        self, index: str, verb: str, fields: dict[str, Any], part: str, changes: bool = False
    ) -> _Call:
        path = _path(index, verb)
        return _Call("POST", path, _plain(fields), lambda found: found[part], changes)

    def _explain(self, index: str, query: dict[str, Any], point: int | str) -> _Call:
        body = _plain({"query": query, "id": point})
        return _Call("POST", _path(index, "explain"), body, lambda found: found)

    def _map(self, index: str, column: str | None, limit: int | None) -> _Call:
        given = {"column": column, "limit": limit}
        asked = urlencode({name: value for name, value in given.items() if value is not None})
        path = _path(index, "map")
        return _Call("GET", f"{path}?{asked}" if asked else path, None, lambda found: found)

    def _rerank(
        self,
        index: str,
        query: Any,
        documents: Sequence[str] | None,
        ids: Sequence[int | str] | None,
        top_n: int | None,
    ) -> _Call:
        given = {"query": query, "documents": documents, "ids": ids, "top_n": top_n}
        body = _plain({name: value for name, value in given.items() if value is not None})
        return _Call("POST", _path(index, "rerank"), body, _reranked)

    def _get(self, index: str, ids: Sequence[int | str], vectors: bool) -> _Call:
        return self._post(index, "points", {"ids": ids, "vectors": vectors}, "points")

    def _change(self, index: str, verb: str, points: Sequence[dict[str, Any]]) -> _Call:
        return self._post(index, verb, {"points": points}, "ids", changes=True)

    def _remove(self, index: str, ids: Sequence[int | str]) -> _Call:
        return self._post(index, "remove", {"ids": ids}, "ids", changes=True)

    def _headers(self) -> dict[str, str]:
        """Return the headers of one request."""
        traceparent = None if self._traceparent is None else self._traceparent()
        return {} if traceparent is None else {"traceparent": traceparent}

    def _wait(self, call: _Call, response: httpx.Response, attempt: int) -> float | None:
        """Return the seconds after which to ask again, or None where it is no use.

        A change is asked for again only where the service says so: it may have been made.
        """
        if response.status_code != 503 or attempt >= self._retries:
            return None
        said = response.headers.get("Retry-After")
        if said is None and call.changes:
            return None
        known = said is not None and said.isascii() and said.isdigit()  # otherwise a date
        return min(float(said), LONGEST_WAIT) if known else 1.0

    def _result(self, call: _Call, response: httpx.Response) -> Any:
        """Read an answer, or raise what it says."""
        if response.is_success:
            plain = response.headers.get("Content-Type", "").startswith("text/plain")
            return call.read(response.text if plain else response.json())
        try:
            detail = str(response.json()["detail"])
        except (ValueError, KeyError, TypeError):
            detail = response.text[:200]
        said = f"{self._address} answered {response.status_code}: {detail}"
        if response.status_code in REFUSED:
            raise InputError(said)
        if response.status_code == 503:
            raise UnreachableError(said)
        raise RankfoldError(said)

    def _unreachable(self, error: httpx.TransportError) -> UnreachableError:
        kind = "did not answer in time" if isinstance(error, httpx.TimeoutException) else str(error)
        return UnreachableError(f"{self._address} is not reached: {kind}")


class Client(_Calls):
    """Asks a service; to be closed, or used with ``with``.

    A request that the service refuses because it is busy (503) is sent again after the time that
    the service names; a change only if it names one, since it may have been made otherwise. What
    it says is wrong raises `InputError`; no answer, `UnreachableError`.

    Parameters
    ----------
    address : str
        Such as ``http://127.0.0.1:8765``.
    key : str, optional
        The service's key, where it has one.
    timeout : float
        Seconds to wait for an answer.
    retries : int
        How often to ask again while the service is busy.
    traceparent : callable, optional
        Returns the header of W3C Trace Context for the request that is about to be sent, or None;
        the log of the service then names its trace.

    Examples
    --------
    >>> from rankfold.client import Client
    >>> with Client("http://127.0.0.1:8765") as client:  # doctest: +SKIP
    ...     answer = client.query("digits", ids=[170], top=5, parameters={"smoothness": 10})
    ...     answer.ids, answer.certified
    ([206, 1327, 1282, 1286, 164], True)
    """

    def __init__(
        self,
        address: str,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        traceparent: Callable[[], str | None] | None = None,
    ) -> None:
        super().__init__(address, key, timeout, retries, traceparent)
        self._http = httpx.Client(**self._options)

    def _send(self, call: _Call) -> Any:
        for attempt in range(self._retries + 1):
            try:
                response = self._http.request(
                    call.verb, call.path, json=call.body, headers=self._headers()
                )
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            pause = self._wait(call, response, attempt)
            if pause is None:
                break
            time.sleep(pause)
        return self._result(call, response)

    def indexes(self) -> list[dict[str, Any]]:
        """Return what there is to know about each index."""
        found: list[dict[str, Any]] = self._send(self._indexes())
        return found

    def info(self, index: str) -> dict[str, Any]:
        """Return what there is to know about an index."""
        found: dict[str, Any] = self._send(self._info(index))
        return found

    def query(self, index: str, **query: Any) -> Answer:
        """Rank the points of an index; the fields of a query are those of the service."""
        return self.query_batch(index, [query])[0]

    def query_batch(self, index: str, queries: Sequence[dict[str, Any]]) -> list[Answer]:
        """Answer several queries in one request, up to 64."""
        found: list[Answer] = self._send(self._query(index, queries))
        return found

    def rerank(
        self,
        index: str,
        query: str | Sequence[float],
        documents: Sequence[str] | None = None,
        *,
        ids: Sequence[int | str] | None = None,
        top_n: int | None = None,
    ) -> list[Reranked]:
        """Put texts, or points by their ``ids``, in order for a text or a vector; best first."""
        found: list[Reranked] = self._send(self._rerank(index, query, documents, ids, top_n))
        return found

    def map(
        self, index: str, column: str | None = None, *, limit: int | None = None
    ) -> dict[str, Any]:
        """Return where points are drawn, with a column of their payload where one is named."""
        found: dict[str, Any] = self._send(self._map(index, column, limit))
        return found

    def health(self) -> dict[str, Any]:
        """Return ``status`` and ``version`` of the service."""
        found: dict[str, Any] = self._send(self._health())
        return found

    def metrics(self) -> str:
        """Return what the service measures about itself, as Prometheus reads it."""
        found: str = self._send(self._metrics())
        return found

    def find(self, index: str, words: str, **fields: Any) -> list[dict[str, Any]]:
        """Find points by words in their payload: ``id``, ``score`` and ``payload`` of each."""
        asked = {"words": words, **fields}
        found: list[dict[str, Any]] = self._send(self._post(index, "find", asked, "results"))
        return found

    def count(self, index: str, where: str | None = None) -> int:
        """Return how many points there are, or how many meet a condition."""
        found: int = self._send(self._post(index, "count", {"where": where}, "count"))
        return found

    def scroll(self, index: str, **fields: Any) -> list[dict[str, Any]]:
        """Return points in the order of their ids; ``after`` is the last id that was seen."""
        found: list[dict[str, Any]] = self._send(self._post(index, "scroll", fields, "points"))
        return found

    def explain(self, index: str, point: int | str, **query: Any) -> dict[str, Any]:
        """Say why a point has its place in the answer to a query."""
        found: dict[str, Any] = self._send(self._explain(index, query, point))
        return found

    def get(
        self, index: str, ids: Sequence[int | str], *, vectors: bool = False
    ) -> list[dict[str, Any]]:
        """Return points by their ids: payload, and vectors where wanted."""
        found: list[dict[str, Any]] = self._send(self._get(index, ids, vectors))
        return found

    def add(self, index: str, points: Sequence[dict[str, Any]]) -> list[int | str]:
        """Add points, each a dict of ``vector``, ``id`` and ``payload``; return their ids."""
        found: list[int | str] = self._send(self._change(index, "add", points))
        return found

    def update(self, index: str, points: Sequence[dict[str, Any]]) -> list[int | str]:
        """Change the vector, the payload or both of points; return their ids."""
        found: list[int | str] = self._send(self._change(index, "update", points))
        return found

    def remove(self, index: str, ids: Sequence[int | str]) -> list[int | str]:
        """Remove points; return their ids."""
        found: list[int | str] = self._send(self._remove(index, ids))
        return found

    def close(self) -> None:
        """Close all connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class AsyncClient(_Calls):
    """The same as `Client`, to be awaited; to be closed, or used with ``async with``."""

    def __init__(
        self,
        address: str,
        key: str | None = None,
        *,
        timeout: float = 30.0,
        retries: int = 3,
        traceparent: Callable[[], str | None] | None = None,
    ) -> None:
        super().__init__(address, key, timeout, retries, traceparent)
        self._http = httpx.AsyncClient(**self._options)

    async def _send(self, call: _Call) -> Any:
        for attempt in range(self._retries + 1):
            try:
                response = await self._http.request(
                    call.verb, call.path, json=call.body, headers=self._headers()
                )
            except httpx.TransportError as error:
                raise self._unreachable(error) from error
            pause = self._wait(call, response, attempt)
            if pause is None:
                break
            await asyncio.sleep(pause)
        return self._result(call, response)

    async def indexes(self) -> list[dict[str, Any]]:
        """Return what there is to know about each index."""
        found: list[dict[str, Any]] = await self._send(self._indexes())
        return found

    async def info(self, index: str) -> dict[str, Any]:
        """Return what there is to know about an index."""
        found: dict[str, Any] = await self._send(self._info(index))
        return found

    async def query(self, index: str, **query: Any) -> Answer:
        """Rank the points of an index; the fields of a query are those of the service."""
        return (await self.query_batch(index, [query]))[0]

    async def query_batch(self, index: str, queries: Sequence[dict[str, Any]]) -> list[Answer]:
        """Answer several queries in one request, up to 64."""
        found: list[Answer] = await self._send(self._query(index, queries))
        return found

    async def rerank(
        self,
        index: str,
        query: str | Sequence[float],
        documents: Sequence[str] | None = None,
        *,
        ids: Sequence[int | str] | None = None,
        top_n: int | None = None,
    ) -> list[Reranked]:
        """Put texts, or points by their ``ids``, in order for a text or a vector; best first."""
        found: list[Reranked] = await self._send(self._rerank(index, query, documents, ids, top_n))
        return found

    async def map(
        self, index: str, column: str | None = None, *, limit: int | None = None
    ) -> dict[str, Any]:
        """Return where points are drawn, with a column of their payload where one is named."""
        found: dict[str, Any] = await self._send(self._map(index, column, limit))
        return found

    async def health(self) -> dict[str, Any]:
        """Return ``status`` and ``version`` of the service."""
        found: dict[str, Any] = await self._send(self._health())
        return found

    async def metrics(self) -> str:
        """Return what the service measures about itself, as Prometheus reads it."""
        found: str = await self._send(self._metrics())
        return found

    async def find(self, index: str, words: str, **fields: Any) -> list[dict[str, Any]]:
        """Find points by words in their payload: ``id``, ``score`` and ``payload`` of each."""
        asked = {"words": words, **fields}
        found: list[dict[str, Any]] = await self._send(self._post(index, "find", asked, "results"))
        return found

    async def count(self, index: str, where: str | None = None) -> int:
        """Return how many points there are, or how many meet a condition."""
        found: int = await self._send(self._post(index, "count", {"where": where}, "count"))
        return found

    async def scroll(self, index: str, **fields: Any) -> list[dict[str, Any]]:
        """Return points in the order of their ids; ``after`` is the last id that was seen."""
        found: list[dict[str, Any]] = await self._send(
            self._post(index, "scroll", fields, "points")
        )
        return found

    async def explain(self, index: str, point: int | str, **query: Any) -> dict[str, Any]:
        """Say why a point has its place in the answer to a query."""
        found: dict[str, Any] = await self._send(self._explain(index, query, point))
        return found

    async def get(
        self, index: str, ids: Sequence[int | str], *, vectors: bool = False
    ) -> list[dict[str, Any]]:
        """Return points by their ids: payload, and vectors where wanted."""
        found: list[dict[str, Any]] = await self._send(self._get(index, ids, vectors))
        return found

    async def add(self, index: str, points: Sequence[dict[str, Any]]) -> list[int | str]:
        """Add points, each a dict of ``vector``, ``id`` and ``payload``; return their ids."""
        found: list[int | str] = await self._send(self._change(index, "add", points))
        return found

    async def update(self, index: str, points: Sequence[dict[str, Any]]) -> list[int | str]:
        """Change the vector, the payload or both of points; return their ids."""
        found: list[int | str] = await self._send(self._change(index, "update", points))
        return found

    async def remove(self, index: str, ids: Sequence[int | str]) -> list[int | str]:
        """Remove points; return their ids."""
        found: list[int | str] = await self._send(self._remove(index, ids))
        return found

    async def close(self) -> None:
        """Close all connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, *_: type[BaseException] | BaseException | TracebackType | None
    ) -> None:
        await self.close()


def _path(index: str, verb: str | None = None) -> str:
    path = f"/v1/indexes/{quote(index, safe='')}"
    return path if verb is None else f"{path}/{verb}"


def _plain(value: Any) -> Any:
    """Turn arrays, also inside of lists and dicts, into what JSON can hold."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple | range):
        return [_plain(one) for one in value]
    return value


def _reranked(found: dict[str, Any]) -> list[Reranked]:
    return [Reranked(one["index"], one["relevance_score"], one["id"]) for one in found["results"]]


def _answers(found: dict[str, Any]) -> list[Answer]:
    answers = []
    for details in found["answers"]:
        known = [{name: hit.get(name) for name in Hit._fields} for hit in details.pop("results")]
        hits = [Hit(**hit) for hit in known]
        answers.append(Answer(hits, details["certified"], details["bound"], details))
    return answers
