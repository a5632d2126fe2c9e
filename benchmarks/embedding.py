"""What shape vectors keep of RAN's gain, and what they cost.

Every labelled set of the page on quality, chosen on and tested on apart: the normalization of the
vectors, 0.25, was chosen out of five powers on the first, with the second in sight. Queries are 300
points of each set, a result is right if it has the query's label. *RAN* is the ranking by shape
alone, *fusion* the default, ``RAN()``. Vectors are searched by dot product, exactly unless it
says HNSW (FAISS, 32 links, 128 candidates); *cosine* searches them as unit vectors, *beside the
plain vector* is one Euclidean search in both, *fused* lets `fuse` order the first 500 results.
*PQ* are product-quantised codes. *Kept* is the mean gain of R-precision (RP) beside that of RAN.
Harm is the share of queries whose first ten results are worse than by plain distance. *Unseen*
holds a tenth of the points out, of which up to 300 are queries by ``transform``, or by RAN as
vectors.

With --times, on a page of its own: what they cost. Digits of MNIST are embedded, from the vectors
to the last number. SpectralEmbedding gets the graph of ours; umap-learn searches lists of its own.
Searches are compared at the same number of candidates, beside plain vectors that are made as long
by principal components. Times are wall clock, and seconds of processor time, which other work on
the machine bends less.

Needs the folder RANKFOLD_DATA and the extra "bench".
"""

import json
import warnings
from time import perf_counter, process_time

import faiss
import numpy as np
from kit.graphs import many_sheets
from kit.pictures import GREY, INK, RIGHT, WRONG, plot
from kit.report import OUT, Goal, options, publish, table, versions
from quality import CHOSEN, TESTED, chosen_on, eligible, part_of_mnist, tested_on
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import SpectralEmbedding

from rankfold import RAN, Dataset, datasets
from rankfold.embedding import ShapeEmbedding, agreement, fuse
from rankfold.graph.adaptive import ClosedForm

LENGTHS = (32, 64, 128, 256, 512, 1024)
USUAL, N_QUERIES, BRIEF, CANDIDATES, MANY = 256, 300, 40, 500, 10_000
FEW = 10_000
PLAIN_WEIGHT = 0.1
LINKS, EF = 32, 128
RAN_ALONE, FUSION = "RAN", "fusion"
FUSED = f"fused, {USUAL}"
PACKAGES = ("rankfold", "faiss-cpu", "scikit-learn", "umap-learn")
SEARCHING = f"Searching 70,000 digits by HNSW of FAISS, {USUAL} numbers, one thread"

CODES = {"PQ 64 bytes": 64, "PQ 32 bytes": 32}


def shortened(vectors, length, power=0.25):
    """Return the first numbers of vectors that are not normalised; the first are the same."""
    part = vectors[:, :length]
    lengths = np.linalg.norm(part, axis=1, keepdims=True)
    return (part / np.where(lengths > 0, lengths, 1) ** power).astype(np.float32)


def best(scores, top, own=None):
    """Return the columns of the highest scores of each row, ``own`` left out."""
    if own is not None:
        scores[np.arange(len(own)), own] = -np.inf
    top = min(top, scores.shape[1] - (own is not None))
    found = np.argpartition(-scores, top - 1, axis=1)[:, :top]
    order = np.argsort(-np.take_along_axis(scores, found, 1), axis=1, kind="stable")
    return np.take_along_axis(found, order, 1)


def measures(order, right_label, labels, sizes):
    """Return P@1, P@10 and R-precision of every query."""
    right = np.cumsum(labels[order] == right_label[:, None], axis=1)
    length = np.minimum(sizes, right.shape[1])
    exact = right[np.arange(len(order)), length - 1] / sizes
    return {"P@1": right[:, 0], "P@10": right[:, min(9, right.shape[1] - 1)] / 10, "RP": exact}


def hnsw(vectors, queries, top, own=None):
    index = faiss.IndexHNSWFlat(vectors.shape[1], LINKS, faiss.METRIC_INNER_PRODUCT)
    index.add(vectors)
    index.hnsw.efSearch = max(EF, top + 1)
    return without(index.search(queries, top + 1)[1], own, top)


def quantised(vectors, queries, n_bytes, top, own=None):
    index = faiss.IndexPQ(vectors.shape[1], n_bytes, 8, faiss.METRIC_INNER_PRODUCT)
    index.train(vectors)
    index.add(vectors)
    return without(index.search(queries, top + 1)[1], own, top)


def without(found, own, top):
    """Leave the query itself out of its results; a short list ends in its first result."""
    if own is None:
        own = np.full(len(found), -1)
    rows = [row[(row != point) & (row >= 0)][:top] for row, point in zip(found, own, strict=True)]
    return np.array([np.pad(row, (0, top - len(row)), mode="edge") for row in rows])


def reordered(found, products, distances, embedding):
    """Let shape and distance share in the order of the first results."""
    order = found.copy()
    for row, candidates in enumerate(found[:, :CANDIDATES]):
        scores = fuse(
            products[row, candidates],
            distances[row, candidates],
            n_neighbors=embedding.n_neighbors_,
            degrees=embedding.degrees_[candidates],
        )
        order[row, : len(candidates)] = candidates[np.argsort(-scores, kind="stable")]
    return order


def answers(dataset, rows, vectors, queries_of, ranker, top, distances, embedding, own):
    """Yield every method with the orders that it gives."""
    asked = rows.tolist() if own is not None else None
    for name, fusion in ((RAN_ALONE, "none"), (FUSION, "auto")):
        chosen = ranker.with_fusion(fusion)
        if asked is not None:
            found = chosen.rank_many(asked, top=top)
        else:
            found = [chosen.rank(vectors=vector, top=top) for vector in rows]
        yield name, np.array([ranking.indices for ranking in found])
    for length in LENGTHS:
        if length <= vectors.shape[1] or length == USUAL:
            known, asking = shortened(vectors, length), shortened(queries_of, length)
            yield str(length), best(asking @ known.T, top, own)
    known, asking = shortened(vectors, USUAL), shortened(queries_of, USUAL)
    products = asking @ known.T
    longer = best(products.copy(), max(top, CANDIDATES), own)
    yield FUSED, reordered(longer, products, distances, embedding)[:, :top]
    yield f"HNSW, {USUAL}", hnsw(known, asking, top, own)
    unit, ask_unit = shortened(vectors, USUAL, 1.0), shortened(queries_of, USUAL, 1.0)
    cosines = ask_unit @ unit.T
    yield f"cosine, {USUAL}", best(cosines.copy(), top, own)
    ends = embedding.ranker_.neighbors_.sq_distances[:, embedding.n_neighbors_]
    both = 2 - 2 * cosines + PLAIN_WEIGHT * distances / float(np.mean(ends))
    yield f"beside the plain vector, {USUAL}", best(-both, top, own)
    for name, n_bytes in CODES.items():
        if known.shape[1] % n_bytes == 0 and len(known) >= MANY:
            yield f"{name}, {USUAL}", quantised(known, asking, n_bytes, top, own)


def measured(dataset, n_queries):
    """Return what every method gives on a set, its points as queries."""
    labels, n_points = dataset.labels, len(dataset.labels)
    rows = eligible(dataset, n_queries)
    sizes = np.bincount(labels)[labels][rows] - 1
    top = min(n_points - 1, max(100, int(sizes.max())))
    length = min(n_points, LENGTHS[-1] if n_points <= MANY else 512)
    settings = {"metric": dataset.metric, "normalization": 0.0}
    embedding = ShapeEmbedding(length, **settings).fit(dataset.X)
    vectors, ranker = embedding.vectors(), RAN(metric=dataset.metric).fit(dataset.X)
    engine = ranker.engine_
    nobody = np.empty((0, engine.n_features), dtype=dataset.X.dtype)
    distances = np.array(list(engine.sq_distances(rows, nobody)))
    judge = labels[rows], labels, sizes
    plain = measures(best(-distances, top, rows), *judge)
    found, shared = {}, {}
    methods = answers(
        dataset, rows, vectors, vectors[rows], ranker, top, distances, embedding, rows
    )
    for name, order in methods:
        found[name] = measures(order, *judge)
        if name == RAN_ALONE:
            true = order[:, :100]
        pairs = zip(order[:, :100], true, strict=True)
        shared[name] = np.mean([len(np.intersect1d(*pair)) / true.shape[1] for pair in pairs])
    return plain, found, shared


def unseen(dataset, n_queries):
    """Return what vectors give that are not in the database."""
    rng = np.random.default_rng(0)
    mixed = rng.permutation(len(dataset.labels))
    out = np.sort(mixed[: max(1, len(mixed) // 10)])
    kept = np.setdiff1d(mixed, out)
    labels = dataset.labels[kept]
    sizes = np.bincount(labels, minlength=dataset.labels.max() + 1)[dataset.labels[out]]
    out, sizes = out[sizes > 0][:n_queries], sizes[sizes > 0][:n_queries]
    X, rows = dataset.X[kept], dataset.X[out]
    top = min(len(kept) - 1, max(100, int(sizes.max())))
    settings = {"metric": dataset.metric, "normalization": 0.0}
    embedding = ShapeEmbedding(min(len(kept), USUAL), **settings).fit(X)
    ranker = RAN(metric=dataset.metric).fit(X)
    distances = np.array(list(ranker.engine_.sq_distances(np.empty(0, dtype=int), rows)))
    judge = dataset.labels[out], labels, sizes
    plain = measures(best(-distances, top), *judge)
    vectors, queries = embedding.vectors(), embedding.transform(rows)
    methods = answers(dataset, rows, vectors, queries, ranker, top, distances, embedding, None)
    wanted = (RAN_ALONE, FUSION, str(USUAL), FUSED)
    return plain, {name: measures(order, *judge) for name, order in methods if name in wanted}, {}


def rows_of(name, used, plain, found, shared):
    yield {"set": name, "used": used, "method": "plain",
           **{metric: f"{100 * values.mean():.1f}" for metric, values in plain.items()},
           "harm at 10 %": "", "of RAN's first 100 %": ""}  # fmt: skip
    for method, values in found.items():
        gains = {
            metric: f"{100 * (values[metric].mean() - plain[metric].mean()):+.1f}"
            for metric in plain
        }
        harm = 100 * np.mean(values["P@10"] < plain["P@10"])
        same = f"{100 * shared[method]:.1f}" if method in shared else ""
        yield {"set": name, "used": used, "method": method, **gains,
               "harm at 10 %": f"{harm:.1f}", "of RAN's first 100 %": same}  # fmt: skip


def means(results):
    """Return mean gains, harm and agreement by use and method; shorter sets have all they can."""
    found = {}
    for used in (CHOSEN, TESTED):
        some = [result for result in results if result[1] == used]
        if not some:
            continue
        names = dict.fromkeys(name for result in some for name in result[3])
        for method in names:
            there = [result for result in some if method in result[3]]
            values = {"used": used, "method": method, "sets": len(there)}
            for metric in ("P@1", "P@10", "RP"):
                gains = [100 * (f[method][metric].mean() - p[metric].mean())
                         for _, _, p, f, _ in there]  # fmt: skip
                values[metric] = float(np.mean(gains))
                values[f"{metric}, worst set"] = float(min(gains))
            of_ran = [100 * (f[RAN_ALONE]["RP"].mean() - p["RP"].mean()) for _, _, p, f, _ in there]
            values["kept"] = values["RP"] / float(np.mean(of_ran))
            values["harm"] = float(np.mean([100 * np.mean(f[method]["P@10"] < p["P@10"])
                                            for _, _, p, f, _ in there]))  # fmt: skip
            shares = [s[method] for *_, s in there if method in s]
            values["shared"] = float(np.mean(shares)) if shares else None
            found[used, method] = values
    return found


def summary(found):
    for values in found.values():
        row = {"used": values["used"], "method": values["method"], "sets": values["sets"]}
        for metric in ("P@1", "P@10", "RP"):
            row[metric] = f"{values[metric]:+.2f}"
            row[f"{metric}, worst set"] = f"{values[f'{metric}, worst set']:+.1f}"
        shared = values["shared"]
        yield row | {
            "kept of RAN's RP %": f"{100 * values['kept']:.1f}",
            "harm at 10 %": f"{values['harm']:.1f}",
            "of RAN's first 100 %": "" if shared is None else f"{100 * shared:.1f}",
        }


def timed(work):
    wall, own = perf_counter(), process_time()
    result = work()
    return perf_counter() - wall, process_time() - own, result


def built(name, method, n_points, length, work, kept=None):
    wall, own, made = timed(work)
    if kept is not None:
        kept.append(made)
    return {"data": name, "points": n_points, "method": method, "numbers": length,
            "seconds": wall, "processor s": own}  # fmt: skip


def build_times(large, kept):
    """Yield what embeddings cost; other libraries beside it where they finish in minutes.

    The embedding of all digits is kept.
    """
    from umap import UMAP

    name, X = "mnist", part_of_mnist(FEW).X
    yield built(name, "ShapeEmbedding, with lists", 70_000, USUAL,
                lambda: ShapeEmbedding(USUAL).fit(datasets.load("mnist").X), kept)  # fmt: skip
    yield built(name, "neighbour lists", FEW, "", lambda: RAN(fusion="none").fit(X))
    yield built(name, "ShapeEmbedding, with lists", FEW, USUAL,
                lambda: ShapeEmbedding(USUAL).fit(X))  # fmt: skip
    for length in (2, USUAL):
        rival = UMAP(n_components=length, n_neighbors=15)
        yield built(name, "umap-learn, with lists", FEW, length, lambda one=rival: one.fit(X))
    ranker = RAN(fusion="none").fit(X)
    graph = ClosedForm.of(ranker.neighbors_, ranker.n_neighbors_).symmetric()
    spectral = SpectralEmbedding(USUAL, affinity="precomputed", eigen_solver="lobpcg",
                                 eigen_tol=1e-3, random_state=0)  # fmt: skip
    yield built(name, "SpectralEmbedding, LOBPCG, on the graph", FEW, USUAL,
                lambda: spectral.fit(graph))  # fmt: skip
    if large:
        engine = many_sheets(1_000_000).engine
        yield built("sheets", "ShapeEmbedding, with lists", 1_000_000, USUAL,
                    lambda: ShapeEmbedding(USUAL).fit(engine))  # fmt: skip


def query_times(embedding):
    """Yield a search of HNSW in shape vectors, and in plain ones of the same width."""
    shape, X = embedding.vectors(), datasets.load("mnist").X
    plain = PCA(USUAL, random_state=0).fit_transform(X).astype(np.float32)
    rows = np.random.default_rng(0).permutation(len(shape))[:1000]
    indexes = {}
    for name, vectors, metric in (
        ("shape", shape, faiss.METRIC_INNER_PRODUCT), ("plain, by PCA", plain, faiss.METRIC_L2),
    ):  # fmt: skip
        index = faiss.IndexHNSWFlat(USUAL, LINKS, metric)
        index.add(vectors)
        true = faiss.knn(vectors[rows], vectors, 100, metric)[1]
        indexes[name] = index, vectors, true
    faiss.omp_set_num_threads(1)
    for ef in (64, 128, 256):
        for name, (index, vectors, true) in indexes.items():
            index.hnsw.efSearch = ef
            index.search(vectors[rows[:50]], 100)
            _, own, found = timed(lambda index=index, vectors=vectors: index.search(
                vectors[rows], 100)[1])  # fmt: skip
            pairs = zip(found, true, strict=True)
            recall = np.mean([len(np.intersect1d(*pair)) / 100 for pair in pairs])
            yield {"vectors": name, "candidates": ef, "ms a query": 1000 * own / len(rows),
                   "recall of the first 100": recall}  # fmt: skip


def staleness():
    """Yield how agreement falls as points come that were not there when it was fitted."""
    data = part_of_mnist(20_000)
    whole = RAN(fusion="none").fit(data.X)
    for share in (1.0, 0.95, 0.9, 0.75, 0.5):
        n_old = int(share * len(data.X))
        embedding = ShapeEmbedding(USUAL).fit(data.X[:n_old])
        known = embedding.vectors()
        if n_old < len(data.X):
            known = np.vstack([known, embedding.transform(data.X[n_old:])])
        yield {"fitted": n_old, "by transform": len(data.X) - n_old,
               "agreement with RAN's first 100": agreement(whole, known)}  # fmt: skip


def judge(found):
    """Return the goals of what is kept."""
    usual = [found[used, str(USUAL)]["kept"] for used in (CHOSEN, TESTED) if (used, FUSED) in found]
    fused = [found[used, FUSED]["harm"] for used in (CHOSEN, TESTED) if (used, FUSED) in found]
    of_ran = [found[used, FUSION]["harm"] for used in (CHOSEN, TESTED) if (used, FUSED) in found]
    goals = [
        Goal(f"RP kept by {USUAL} numbers, {where}", kept, least=0.9)
        for where, kept in zip((CHOSEN, TESTED), usual, strict=False)
    ]
    goals += [
        Goal(f"harm at 10 beside fusion's, `fuse` on {USUAL} numbers, {where}", own / other, most=1)
        for where, own, other in zip((CHOSEN, TESTED), fused, of_ran, strict=False)
    ]
    return goals


def judge_times(builds, queries):
    """Return the goals of what it costs."""
    ratio = queries[2]["ms a query"] / queries[3]["ms a query"]
    goals = [Goal(f"HNSW with {EF} candidates, shape / plain of that width", ratio, most=1.1)]
    for row in builds:
        if row["method"].startswith("Shape") and row["points"] > 20_000:
            most = 4 if row["points"] == 70_000 else 60
            goals.append(Goal(f"{row['points']:,} points embedded", row["seconds"] / 60,
                              most=most, unit="min"))  # fmt: skip
    return goals


def picture(found):
    figure, (axes,) = plot("A few hundred numbers carry most of what the graph knows",
                           "Gain of R-precision by shape vectors, beside that of RAN by shape "
                           "alone, on average", 1, size=(8, 4.6))  # fmt: skip
    for used, color in ((CHOSEN, WRONG), (TESTED, RIGHT)):
        there = [length for length in LENGTHS if (used, str(length)) in found]
        kept = [100 * found[used, str(length)]["kept"] for length in there]
        axes.plot(there, kept, "o-", color=color)
        if there:  # lines lie apart where vectors are short
            axes.annotate(used, (there[0], kept[0]), (12, -4), color=color, weight="bold",
                          textcoords="offset points")  # fmt: skip
    axes.axhline(100, color=GREY, linewidth=1)
    axes.set_xscale("log", base=2)
    axes.set_xticks(LENGTHS, [str(length) for length in LENGTHS])
    axes.set_xlabel("numbers a vector", color=INK)
    axes.set_ylabel("% of RAN's gain", color=INK)
    return figure


def publish_times(arguments):
    """Print what embeddings cost, without what they are good for."""
    warnings.simplefilter("ignore")
    kept = []
    builds = table(build_times(arguments.large, kept))
    queries = table(query_times(kept[0]))
    intro = [*__doc__.split("\n\n")[2].splitlines(), "", versions(*PACKAGES)]
    tables = {"Building": builds, SEARCHING: queries}
    publish("embedding_times", "what shape vectors cost", intro, tables,
            judge_times(builds, queries), docs=arguments.docs, script="embedding")  # fmt: skip


def main():
    parser = options(__doc__, large="a million points as well")
    parser.add_argument("--brief", action="store_true", help="few queries, no page worth keeping")
    parser.add_argument("--times", action="store_true", help="times alone, on a page of their own")
    arguments = parser.parse_args()
    if arguments.times:
        publish_times(arguments)
    else:
        publish_quality(arguments)


def publish_quality(arguments):
    """Print what embeddings keep."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_queries = BRIEF if arguments.brief else N_QUERIES
    results, rows, strange, strange_rows = [], [], [], []
    for sets, used in ((chosen_on(), CHOSEN), (tested_on(), TESTED)):
        for dataset in sets:
            result = (dataset.name, used, *measured(dataset, n_queries))
            results.append(result)
            rows += table(rows_of(*result))
            if not dataset.metric.startswith("precomputed"):
                held = Dataset(dataset.name, dataset.X, dataset.labels, dataset.metric)
                strange.append((dataset.name, used, *unseen(held, n_queries)))
                strange_rows += list(rows_of(*strange[-1]))
    found = means(results)
    tables = {
        "Means over the sets": table(summary(found)),
        "Unseen queries, means": table(summary(means(strange))),
        "Points that come later, 20,000 digits of MNIST": table(staleness()),
        "Every set": rows,
    }
    intro = [*__doc__.split("\n\n")[1].splitlines(), "", versions(*PACKAGES)]
    publish("embedding", "shape as a vector", intro, tables, judge(found),
            picture(found), "From 128 numbers on, most of RAN's gain is kept.",
            arguments.docs)  # fmt: skip
    (OUT / "embedding_means.json").write_text(json.dumps([*found.values()], indent=2))


if __name__ == "__main__":
    main()
