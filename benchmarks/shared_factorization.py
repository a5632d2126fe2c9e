"""What does one factorisation for all queries save? Ratios from one run on the digits."""

from time import perf_counter

from rankfold import RAN, Distance, datasets


def seconds(work):
    start = perf_counter()
    work()
    return perf_counter() - start


def main():
    digits = datasets.load("digits")
    shared = RAN(solver="direct").fit(digits.X)
    single = RAN(solver="cg").fit(digits.X)
    plain = Distance().fit(digits.X)
    shared.search(k=50)
    all_shared = seconds(lambda: shared.search(k=50))
    all_single = seconds(lambda: single.search(k=50))
    all_plain = seconds(lambda: plain.search(k=50))
    adapting = RAN(max_iter=2, guard=False, tol=1.0).fit(digits.X)
    sample = range(0, len(digits.X), 18)
    second = seconds(lambda: adapting.rank_many(sample, top=50)) / len(sample)
    print(f"{len(digits.X)} queries, every point once, k={shared.n_neighbors_}, top 50")
    print(f"one solve per query / one factorisation for all: {all_single / all_shared:.1f}")
    print(f"one factorisation for all / plain distance:      {all_shared / all_plain:.2f}")
    per_query = all_shared / len(digits.X)
    print(f"two alternations / one, per query:               {second / per_query:.1f}")


if __name__ == "__main__":
    main()
