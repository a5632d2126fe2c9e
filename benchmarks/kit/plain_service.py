"""Plain FAISS behind the guards, turns, logs and metrics of the service: a process of its own.

Started with the files of FAISS indexes, each of which becomes a route.
"""

import sys
from pathlib import Path

import faiss
import uvicorn
from fastapi import FastAPI
from fastapi.responses import JSONResponse

from rankfold.service.limits import Limited, Settings
from rankfold.service.logs import write_logs
from rankfold.service.middleware import protect
from rankfold.service.requests import QueriesRequest
from rankfold.service.server import SWITCH_SECONDS, address_of, bind, patient_for

SETTINGS = Settings()


def plain_app(searches):
    """Return an app with a route for each FAISS index."""
    app = FastAPI(openapi_url=None)
    protect(app, SETTINGS, {})

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
        async def query(body: QueriesRequest, turn: Limited) -> JSONResponse:
            return await turn.answer("light", answer, search, body.queries)

    for name, search in searches.items():
        add(name, search)
    return app


def main():
    faiss.omp_set_num_threads(1)
    app = plain_app({Path(file).stem: faiss.read_index(file) for file in sys.argv[1:]})
    write_logs("info")
    sys.setswitchinterval(SWITCH_SECONDS)
    with bind("127.0.0.1", 0) as place:
        place.listen()  # whoever reads the address may connect
        print(address_of(place), flush=True)
        config = uvicorn.Config(
            app, ws="none", log_config=None, access_log=False, http=patient_for(SETTINGS)
        )
        uvicorn.Server(config).run(sockets=[place])


if __name__ == "__main__":
    main()
