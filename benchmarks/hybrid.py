"""Hybrid queries: words, distance and shape, each alone and fused by reciprocal ranks.

Questions of two search collections, by the vectors of two models. *Words* is `Index.find` with the
question as it stands, *distance* plain cosine, *shape* RAN without distance: the three lists that a
query with ``words`` fuses, which is *hybrid*. *RAN* is the default of a query without words. *Words
and distance* is a hybrid query with ``method="distance"``. *Words and RAN* fuses two lists, words
and the default of RAN, to 500 places; no query does that. 60, which is added to every rank, and
lists of equal weight are as in the literature, and were not varied. The three lists were settled
before any was measured; words and RAN was tried on the same questions and not taken up, so that
these figures are of no data that were kept aside. Harm and helped are the shares of questions whose
nDCG@10 is worse and better than by plain distance.

Needs the folder RANKFOLD_DATA.
"""

import gzip
import json
import os
from pathlib import Path

import numpy as np
from kit import collections
from kit.report import options, publish, table, versions

from rankfold import Index, metrics

DEPTH, TRIED_DEPTH, RANK_OFFSET = 100, 500, 60
WAYS = {
    "distance": {"method": "distance"},
    "shape": {"fusion": "none"},
    "RAN": {},
    "words and distance": {"method": "distance", "words": True},
    "hybrid": {"words": True},
}


def texts_of(name):
    path = Path(os.environ["RANKFOLD_DATA"]) / f"ir_{name}.json.gz"
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return json.load(file)


def asked(index, way, text, vector):
    if way == "words":
        return index.find(text, top=DEPTH).ids
    if way == "words and RAN":
        return two_lists(
            index.find(text, top=TRIED_DEPTH).ids, index.query(vectors=vector, top=TRIED_DEPTH).ids
        )
    words = {"words": text} if WAYS[way].get("words") else {}
    given = {"top": DEPTH, **WAYS[way], **words}
    return index.query(vectors=vector, **given).ids


def two_lists(*lists):
    scores = {}
    for ids in lists:
        for rank, one in enumerate(ids, start=1):
            scores[one] = scores.get(one, 0.0) + 1 / (RANK_OFFSET + rank)
    return sorted(scores, key=lambda one: -scores[one])[:DEPTH]


def measure():
    """Yield a row for every collection, model and way to ask."""
    for name in collections.COLLECTIONS:
        texts = texts_of(name)
        for model, called in collections.MODELS.items():
            found = collections.load(name, model)
            kept = np.flatnonzero(np.abs(found.X).max(axis=1) > 0)
            ids = [str(found.ids[row]) for row in kept]
            payload = {"text": [texts["docs"][row] for row in kept]}
            with Index.build(found.X[kept], ids, payload, metric="cosine") as index:
                yield from rows(
                    index, found, texts["queries"], {"collection": name, "model": called}
                )


def rows(index, found, questions, about):
    base = None
    for way in ("distance", "words", *list(WAYS)[1:], "words and RAN"):
        gains, recalls = [], []
        for place, question in enumerate(questions):
            judged = found.qrels.get(str(found.query_ids[place]), {})
            grades = {str(one): grade for one, grade in judged.items() if grade > 0}
            if not grades:
                continue
            ids = asked(index, way, question, found.queries[place])
            gained = np.array([grades.get(one, 0) for one in ids], dtype=float)
            gains.append(metrics.ndcg(gained, 10, np.array(list(grades.values()), dtype=float)))
            recalls.append(np.count_nonzero(gained) / len(grades))
        each = np.array(gains)
        base = each if base is None else base
        yield {
            **about,
            "way": way,
            "nDCG@10 %": 100 * float(each.mean()),
            "recall@100 %": 100 * float(np.mean(recalls)),
            "harm %": 100 * float(np.mean(each < base - 1e-9)),
            "helped %": 100 * float(np.mean(each > base + 1e-9)),
        }


def main():
    arguments = options(__doc__).parse_args()
    intro = [*__doc__.strip().splitlines()[2:], "", versions("rankfold")]
    tables = {"Alone and fused": table(measure())}
    publish("hybrid", "hybrid queries", intro, tables, [], docs=arguments.docs)


if __name__ == "__main__":
    main()
