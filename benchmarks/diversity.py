"""What do diverse results cost? Distinct clusters and precision of 20 results on the digits."""

import numpy as np
from kit.report import table
from sklearn.cluster import KMeans

from rankfold import RAN, ManifoldRanking, PersonalizedPageRank, datasets
from rankfold.diversity import diverse, n_candidates

TOP, N_QUERIES, N_CLUSTERS = 20, 200, 100
AMOUNTS = (0.0, 0.25, 0.5, 0.75, 1.0)


def measure():
    """Yield a row for every method and amount; clusters are those of k-means, without labels."""
    digits = datasets.load("digits")
    clusters = KMeans(N_CLUSTERS, n_init=3, random_state=0).fit_predict(digits.X)
    rng = np.random.default_rng(0)
    queries = [int(q) for q in rng.choice(len(digits.X), N_QUERIES, replace=False)]
    for method in (RAN(), PersonalizedPageRank(), ManifoldRanking()):
        method.fit(digits.X)
        rankings = method.rank_many(queries, top=n_candidates(TOP))
        for amount in AMOUNTS:
            chosen = [diverse(method.engine_, ranking, TOP, amount).indices for ranking in rankings]
            right = [
                np.mean(digits.labels[ids] == digits.labels[query])
                for query, ids in zip(queries, chosen, strict=True)
            ]
            yield {
                "method": type(method).__name__,
                "amount": amount,
                "clusters": float(np.mean([len(set(clusters[ids])) for ids in chosen])),
                "precision %": 100 * float(np.mean(right)),
            }


def main():
    print(f"{N_QUERIES} queries, {TOP} results of {n_candidates(TOP)} candidates each, digits")
    table(measure())


if __name__ == "__main__":
    main()
