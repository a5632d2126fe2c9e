"""Plain FAISS behind the guards, turns, logs and metrics of the service: a process of its own.

Started with the files of FAISS indexes, each of which becomes a route.
"""

import socket
import sys
from pathlib import Path
from typing import Any

import faiss
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel

from rankfold.service.protection import protect
from rankfold.service.settings import Settings


class Query(BaseModel):
    """One example; the other fields are there to have bodies of the same length."""

    ids: list[int]
    top: int
    method: str
    columns: list[str]


class Queries(BaseModel):
    """The body of a request."""

    queries: list[Query]


def plain_app(searches):
    """Return an app with a route for each FAISS index."""
    app = FastAPI(openapi_url=None)
    turns = protect(app, Settings(), {}).turns

    def answer(search, asked):
        # All at once, as FAISS is meant to be asked.
        rows = [query.ids[0] for query in asked]
        top = max(query.top for query in asked)
        distances, found = search.search(search.reconstruct_batch(rows), top + 1)
        answers = []
        for row, near, ids in zip(rows, distances.tolist(), found.tolist(), strict=True):
            pairs = [(point, -far) for point, far in zip(ids, near, strict=True) if point != row]
            answers.append({"results": [{"id": i, "score": s} for i, s in pairs[:top]]})
        return {"answers": answers}

    def add(name, search):
        @app.post(f"/{name}")
        async def query(body: Queries) -> dict[str, Any]:
            return await turns.run(answer, search, body.queries)

    for name, search in searches.items():
        add(name, search)
    return app


def main():
    faiss.omp_set_num_threads(1)
    app = plain_app({Path(file).stem: faiss.read_index(file) for file in sys.argv[1:]})
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # whoever reads the address may connect
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        config = uvicorn.Config(app, log_level="warning", access_log=False)
        uvicorn.Server(config).run(sockets=[listening])


if __name__ == "__main__":
    main()
