"""Shape in a vector database: Qdrant, with one more vector for every point."""

from pathlib import Path

import numpy as np
from _frame import draw_tile, new_panels, run, save
from qdrant_client import QdrantClient, models

from rankfold import datasets
from rankfold.drawing import RIGHT, WRONG
from rankfold.embedding import ShapeEmbedding, fuse
from rankfold.types import FloatArray, IntArray

NUMBERS, SHOWN, TOP, N_QUERIES, CANDIDATES = 128, 40, 100, 200, 500
ACROSS, SIZE = 8, 52


def filled(plain: FloatArray, shape: FloatArray) -> QdrantClient:
    """Return a database in this process whose points have both vectors."""
    client = QdrantClient(":memory:")
    parameters = models.VectorParams
    client.create_collection(
        "digits",
        vectors_config={
            "plain": parameters(size=plain.shape[1], distance=models.Distance.EUCLID),
            "shape": parameters(size=shape.shape[1], distance=models.Distance.DOT),
        },
    )
    points = [
        models.PointStruct(id=row, vector={"plain": plain[row].tolist(), "shape": one.tolist()})
        for row, one in enumerate(shape)
    ]
    client.upsert("digits", points=points)
    return client


def ask(client: QdrantClient, query: FloatArray, using: str, limit: int) -> tuple[IntArray, ...]:
    """Return the ids of the nearest by one kind of vector, and their scores."""
    found = client.query_points("digits", query=query.tolist(), using=using, limit=limit).points
    return np.array([point.id for point in found]), np.array([point.score for point in found])


def main(out: Path) -> dict[str, float]:
    """Write shape vectors of digits into Qdrant, and ask it by both kinds."""
    digits = datasets.load("digits")
    known, unseen = np.arange(N_QUERIES, len(digits.X)), np.arange(N_QUERIES)
    X, labels = digits.X[known], digits.labels[known]
    embedding = ShapeEmbedding(NUMBERS).fit(X)
    client, queries = filled(X, embedding.vectors()), embedding.transform(digits.X[unseen])
    right = {name: np.zeros((N_QUERIES, TOP), dtype=bool) for name in ("plain", "shape", "fused")}
    answers: dict[str, list[IntArray]] = {"plain": [], "shape": []}
    for row, query in enumerate(queries):
        plain, _ = ask(client, digits.X[row], "plain", TOP)
        ids, products = ask(client, query, "shape", CANDIDATES)
        distances = ((X[ids] - digits.X[row]) ** 2).sum(axis=1)
        scores = fuse(products, distances, n_neighbors=embedding.n_neighbors_)
        both = ids[np.argsort(-scores, kind="stable")]
        for name, order in (("plain", plain), ("shape", ids), ("fused", both)):
            right[name][row] = labels[order[:TOP]] == digits.labels[row]
        answers["plain"].append(plain)
        answers["shape"].append(both)
    gains = right["fused"][:, :SHOWN].sum(axis=1) - right["plain"][:, :SHOWN].sum(axis=1)
    shown = int(np.argmax(gains))
    chosen = {name: orders[shown] for name, orders in answers.items()}
    draw(out, X, labels, chosen, int(digits.labels[shown]))
    found = {name: float(values.mean()) for name, values in right.items()}
    worse = right["fused"][:, :10].sum(axis=1) < right["plain"][:, :10].sum(axis=1)
    for name, share in found.items():
        print(f"{name}: {share:.1%} of the first {TOP} are right")
    print(f"worse than plain at ten: {worse.mean():.1%}")
    return {**found, "worse": float(worse.mean())}


def draw(
    out: Path, X: FloatArray, labels: IntArray, answers: dict[str, IntArray], digit: int
) -> None:
    """Draw the first results of the query that gains most."""
    headings = {"plain": "Plain vectors", "shape": "Shape vectors, fused with distance"}
    counts = {name: int((labels[ids[:SHOWN]] == digit).sum()) for name, ids in answers.items()}
    figure, panels = new_panels(
        f"Qdrant, asked for images like this {digit}",
        f"The first {SHOWN} results of one search, row by row; orange ones are other digits.",
        [(headings[name], f"{counts[name]} of {SHOWN} are right") for name in answers],
        height=700,
    )
    for axes, ids in zip(panels, answers.values(), strict=True):
        axes.set(xlim=(0, 620), ylim=(396, 0))
        for place, point in enumerate(ids[:SHOWN]):
            color = RIGHT if labels[point] == digit else WRONG
            left, top = 76 * (place % ACROSS) + 6, 76 * (place // ACROSS) + 6
            draw_tile(axes, X[point].reshape(8, 8), left, top, SIZE, color)
        axes.set(xlim=(0, 620), ylim=(396, 0))
    save(figure, out, "shape_vectors")


if __name__ == "__main__":
    run(main)
