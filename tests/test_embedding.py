"""Shape vectors: their products are the Green's kernel, and so RAN's scores."""

import json
import subprocess
import sys

import numpy as np
import pytest
import reference
from effort import examples
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from rankfold import RAN, InputError, datasets
from rankfold.datasets.synthetic import sheets
from rankfold.embedding import ShapeEmbedding, agreement, fuse
from rankfold.graph import symmetric
from rankfold.graph.adaptive import symmetrize
from rankfold.neighbors import DynamicEngine

EXACT = {"dtype": "float64", "normalization": 0.0}


@parametrize_with_checks([ShapeEmbedding(n_components=3, n_neighbors=3)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def moons():
    return datasets.load("moons")


@pytest.fixture(scope="module")
def digits():
    return datasets.load("digits")


@pytest.fixture
def iterated(monkeypatch):
    """Let few points be treated as many."""
    monkeypatch.setattr(symmetric, "DENSE_LIMIT", 10)


def weights_of(embedding):
    return symmetrize(embedding.ranker_.affinity_).toarray()


@pytest.mark.parametrize("smoothness", [0.5, 30.0, 1e4])
def test_products_of_all_components_are_the_kernel(digits, smoothness):
    embedding = ShapeEmbedding(300, smoothness, **EXACT).fit(digits.X[:300])
    found = embedding.vectors()
    kernel = reference.greens_kernel(weights_of(embedding), smoothness)
    np.testing.assert_allclose(found @ found.T, kernel, atol=1e-8)


def test_some_components_are_the_lowest_eigenvectors(digits):
    embedding = ShapeEmbedding(40, **EXACT).fit(digits.X[:300])
    found, expected = embedding.vectors(), reference.shape_vectors(weights_of(embedding), 30.0, 40)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=1e-8)
    assert (np.diff(embedding.eigenvalues_) >= 0).all()


@pytest.mark.parametrize("adapt", ["query", "collective"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_all_components_rank_like_ran(digits, metric, adapt):
    X, settings = digits.X[:200], {"metric": metric, "adapt": adapt}
    found = ShapeEmbedding(200, **settings, **EXACT).fit_transform(X)
    ranking = RAN(fusion="none", **settings).fit(X).rank(7)
    scores = found @ found[7] / (found[7] @ found[7])
    np.testing.assert_allclose(scores[ranking.indices], ranking.scores, atol=1e-8)


def test_unseen_vectors_score_as_ran_scores_them(digits):
    X, unseen = digits.X[:300], digits.X[300:305]
    embedding = ShapeEmbedding(300, **EXACT).fit(X)
    products = embedding.transform(unseen) @ embedding.vectors().T
    ranker = RAN(fusion="none").fit(X)
    for row, vector in zip(products, unseen, strict=True):
        ranking = ranker.rank(vectors=vector)
        expected = np.zeros(300)
        expected[ranking.indices] = ranking.scores
        np.testing.assert_allclose(row / row.max(), expected / expected.max(), atol=1e-8)


def test_unseen_vectors_have_the_products_of_a_new_point(digits):
    X, unseen = digits.X[:120], digits.X[400]
    embedding = ShapeEmbedding(120, n_neighbors=5, **EXACT).fit(X)
    d = [((unseen - x) ** 2).sum() for x in X]
    s, _, _ = reference.closed_form(np.array(d), range(120), 5)
    kernel = reference.kernel_with_new_point(weights_of(embedding), s, 30.0)
    products = embedding.transform(unseen[None]) @ embedding.vectors().T
    np.testing.assert_allclose(products[0], kernel[-1, :120], atol=1e-8)


def test_fitted_points_are_found_again(digits):
    embedding = ShapeEmbedding(32).fit(digits.X[:300])
    np.testing.assert_array_equal(embedding.transform(digits.X[:9]), embedding.vectors()[:9])


@pytest.mark.usefixtures("iterated")
@pytest.mark.parametrize(
    ("dtype", "tol", "error"), [("float32", 1e-4, 1e-3), ("float64", 1e-10, 1e-6)]
)
def test_iteration_finds_what_the_dense_solver_finds(digits, dtype, tol, error):
    embedding = ShapeEmbedding(48, normalization=0.0, dtype=dtype, tol=tol).fit(digits.X[:600])
    found = embedding.vectors().astype(float)
    expected = reference.shape_vectors(weights_of(embedding), 30.0, 48)
    np.testing.assert_allclose(found @ found.T, expected @ expected.T, atol=error)
    mu = np.linalg.eigvalsh(reference.laplacian(weights_of(embedding)))[:48]
    np.testing.assert_allclose(embedding.eigenvalues_, mu, atol=error)
    assert found.dtype == float
    assert embedding.vectors().dtype == dtype


@pytest.mark.usefixtures("iterated")
def test_a_seed_gives_the_same_whatever_the_threads(digits):
    one = ShapeEmbedding(20, n_jobs=1).fit_transform(digits.X[:900])
    two = ShapeEmbedding(20, n_jobs=3).fit_transform(digits.X[:900])
    other = ShapeEmbedding(20, random_state=1).fit_transform(digits.X[:900])
    np.testing.assert_array_equal(one, two)
    assert not np.array_equal(one, other)


@examples(10)
@given(st.integers(0, 2**32 - 1))
def test_permuted_points_have_permuted_products(seed):
    X = datasets.load("digits").X[:150]
    order = np.random.default_rng(seed).permutation(150)
    plain = ShapeEmbedding(30, n_neighbors=6, **EXACT).fit_transform(X)
    mixed = ShapeEmbedding(30, n_neighbors=6, **EXACT).fit_transform(X[order])
    np.testing.assert_allclose(mixed @ mixed.T, (plain @ plain.T)[np.ix_(order, order)], atol=1e-8)


def far_apart(n_pieces, each=12):
    rng = np.random.default_rng(0)
    return (
        1e3 * np.arange(n_pieces)[:, None, None] + rng.normal(size=(n_pieces, each, 3))
    ).reshape(-1, 3)


def test_pieces_have_nothing_in_common():
    embedding = ShapeEmbedding(20, n_neighbors=4).fit(far_apart(3))
    products = embedding.vectors() @ embedding.vectors().T
    pieces = np.repeat(range(3), 12)
    assert embedding.n_pieces_ == 3
    np.testing.assert_allclose(products[pieces[:, None] != pieces], 0, atol=1e-6)
    assert (products[pieces[:, None] == pieces] != 0).any()


def test_more_pieces_than_numbers_warn_and_are_still_told_apart():
    with pytest.warns(UserWarning, match="falls into 40 pieces, but n_components=16"):
        found = ShapeEmbedding(16, n_neighbors=8).fit_transform(far_apart(40))
    pieces = np.repeat(range(40), 12)
    best = (found @ found.T).argsort(axis=1)[:, ::-1][:, :12]
    assert (pieces[best] == pieces[:, None]).mean() > 0.9


@pytest.mark.usefixtures("iterated")
def test_iteration_on_many_pieces():
    X = sheets(1200, n_sheets=30).X
    embedding = ShapeEmbedding(60, n_neighbors=5, tol=1e-5).fit(X)
    zero = embedding.eigenvalues_ < 1e-5
    assert zero.sum() == embedding.n_pieces_ >= 30


def test_points_without_neighbours_have_no_direction():
    distances = sparse.csr_array(
        ([1.0, 2, 1, 1.5, 2, 1.5], ([0, 0, 1, 1, 2, 2], [1, 2, 0, 2, 0, 1])), (4, 4)
    )
    embedding = ShapeEmbedding(4, n_neighbors=1, metric="precomputed")
    with pytest.warns(UserWarning, match="use what they have"):
        found = embedding.fit_transform(distances)
    assert embedding.n_pieces_ == 2
    assert (found[3] == 0).all()
    assert (found[:3] != 0).any(axis=1).all()


def test_removed_points_are_left_out(digits):
    engine = DynamicEngine.build(digits.X[:100], "euclidean", width=24)
    engine.apply(engine.plan(np.arange(5), None))
    found = ShapeEmbedding(100, n_neighbors=10, **EXACT).fit_transform(engine)
    assert found.shape == (100, 95)
    assert (found[:5] == 0).all()
    fresh = ShapeEmbedding(95, n_neighbors=10, **EXACT).fit_transform(digits.X[5:100])
    np.testing.assert_allclose(found[5:] @ found[5:].T, fresh @ fresh.T, atol=1e-8)


def test_lengths_are_divided_by_their_power(moons):
    lengths = {
        power: np.linalg.norm(
            ShapeEmbedding(20, normalization=power).fit_transform(moons.X), axis=1
        )
        for power in (0.0, 0.25, 1.0)
    }
    np.testing.assert_allclose(lengths[1.0], 1, rtol=1e-5)
    np.testing.assert_allclose(lengths[0.25], lengths[0.0] ** 0.75, rtol=1e-4)


def test_pipelines_and_grids(moons):
    pipeline = make_pipeline(StandardScaler(), ShapeEmbedding(8), KNeighborsClassifier(3))
    grid = {"shapeembedding__n_components": [2, 16], "shapeembedding__smoothness": [1.0, 30.0]}
    search = GridSearchCV(pipeline, grid, cv=3, error_score="raise").fit(moons.X, moons.labels)
    assert search.best_score_ == 1.0
    names = search.best_estimator_[:-1].get_feature_names_out()
    assert list(names[:2]) == ["shapeembedding0", "shapeembedding1"]


def test_fusing_all_candidates_is_what_ran_does(digits):
    X = digits.X[:400]
    embedding = ShapeEmbedding(400, **EXACT).fit(X)
    found = embedding.vectors()
    others = np.delete(np.arange(400), 9)
    scores = fuse(
        found[others] @ found[9], ((X[others] - X[9]) ** 2).sum(axis=1),
        n_neighbors=embedding.n_neighbors_, degrees=embedding.degrees_[others],
    )  # fmt: skip
    ranking = RAN().fit(X).rank(9, top=50)
    assert others[np.argsort(-scores)][:50].tolist() == ranking.indices.tolist()


def test_fusions():
    shape, near = [0.9, 0.8, -0.1], [3.0, 1.0, 2.0]
    assert fuse(shape, near, fusion="none").argsort().tolist() == [2, 1, 0]
    assert fuse(shape, near, n_neighbors=1, fusion="reciprocal_rank").argmax() == 1
    with pytest.raises(InputError, match="one number for each candidate"):
        fuse([1.0, 2.0], [1.0])


def test_agreement_falls_when_points_come_and_vectors_stay(digits):
    X = digits.X[:1000]
    embedding = ShapeEmbedding(1000, **EXACT).fit(X)
    assert agreement(embedding.ranker_, embedding.vectors(), top=20, n_queries=50) == 1
    fewer = ShapeEmbedding(1000, **EXACT).fit(X[:500])
    stale = np.vstack([fewer.vectors(), fewer.transform(X[500:])])
    fallen = agreement(embedding.ranker_, stale, top=20, n_queries=50)
    assert 0.2 < fallen < 0.95
    with pytest.raises(InputError, match="one vector for each"):
        agreement(embedding.ranker_, stale[1:])


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_components": 0}, "n_components is 0"),
        ({"smoothness": -1.0}, "smoothness is -1"),
        ({"normalization": 2.0}, "normalization is 2"),
        ({"dtype": "float16"}, "dtype is 'float16'"),
        ({"tol": 0.0}, "tol is 0"),
        ({"n_jobs": 0}, "n_jobs is 0"),
    ],
)
def test_wrong_parameters(moons, parameters, message):
    with pytest.raises(InputError, match=message):
        ShapeEmbedding(**parameters).fit(moons.X)


@pytest.mark.usefixtures("iterated")
def test_too_few_iterations_warn(monkeypatch, digits):
    monkeypatch.setattr(symmetric, "MOST_FILTERS", 1)
    with pytest.warns(UserWarning, match="have not settled to tol"):
        ShapeEmbedding(16).fit(digits.X[:400])


@pytest.mark.usefixtures("iterated")
def test_progress_is_on_stderr(capsys, digits):
    ShapeEmbedding(16, progress=True).fit(digits.X[:400])
    shown = capsys.readouterr()
    assert shown.out == ""
    ShapeEmbedding(16).fit(digits.X[:400])
    assert len(shown.err) > len(capsys.readouterr().err) == 0


@pytest.mark.one_in(2)
@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_a_saved_embedding_transforms_in_another_process(digits, tmp_path, metric):
    fitted = ShapeEmbedding(24, n_neighbors=8, metric=metric).fit(digits.X[:500])
    fitted.save(tmp_path / "shape.npz")
    np.save(tmp_path / "new.npy", digits.X[500:520])
    code = (
        "import sys, numpy as np; from rankfold.embedding import ShapeEmbedding\n"
        "loaded = ShapeEmbedding.load(sys.argv[1] + '/shape.npz')\n"
        "np.save(sys.argv[1] + '/out.npy', loaded.transform(np.load(sys.argv[1] + '/new.npy')))"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True)
    wanted = fitted.transform(digits.X[500:520])
    np.testing.assert_allclose(np.load(tmp_path / "out.npy"), wanted, rtol=1e-5, atol=1e-7)
    loaded = ShapeEmbedding.load(tmp_path / "shape.npz")
    np.testing.assert_array_equal(loaded.vectors(), fitted.vectors())
    assert loaded.get_params() == fitted.get_params()
    assert list(loaded.get_feature_names_out()) == list(fitted.get_feature_names_out())


def described(text):
    """Return a change of what a saved embedding says of itself."""
    return lambda arrays: {"described": np.array(text(json.loads(str(arrays["described"]))))}


CRAFTED = {
    "nested without end": described(lambda _: "[" * 100_000),
    "another smoothness": described(
        lambda said: json.dumps({**said, "parameters": {**said["parameters"], "smoothness": -1}})
    ),
    "a given metric": described(
        lambda said: json.dumps({**said, "parameters": {"metric": "precomputed"}})
    ),
    "no neighbours": described(lambda said: json.dumps({**said, "n_neighbors": 0})),
    "text for neighbours": described(lambda said: json.dumps({**said, "n_neighbors": "8"})),
    "vectors of whole numbers": lambda arrays: {"kernel": arrays["kernel"].astype(int)},
    "vectors that are not finite": lambda arrays: {"kernel": arrays["kernel"] * np.nan},
    "points that are not finite": lambda arrays: {"points": arrays["points"] * np.inf},
    "points of text": lambda arrays: {"points": arrays["points"].astype(str)},
    "points of three dimensions": lambda arrays: {"points": arrays["points"][:, :, None]},
    "too few points": lambda arrays: {"points": arrays["points"][:-1]},
    "too few degrees": lambda arrays: {"degrees": arrays["degrees"][:-1]},
    "too many eigenvalues": lambda arrays: {"eigenvalues": np.zeros(99)},
}


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("craft", CRAFTED.values(), ids=CRAFTED)
def test_a_crafted_embedding_is_refused(moons, tmp_path, craft):
    path = tmp_path / "shape.npz"
    ShapeEmbedding(4).fit(moons.X[:60]).save(path)
    with np.load(path) as archive:
        arrays = {name: archive[name] for name in archive.files}
    np.savez(path, **{**arrays, **craft(arrays)})
    with pytest.raises(InputError, match=r"shape.npz' cannot be read as") as refused:
        ShapeEmbedding.load(path)
    assert str(refused.value).isprintable()


def test_what_is_no_saved_embedding_is_refused(digits, tmp_path):
    with pytest.raises(InputError, match=r"must end in \.npz"):
        ShapeEmbedding(4).fit(digits.X[:50]).save(tmp_path / "shape.pkl")
    (tmp_path / "junk.npz").write_bytes(b"PK junk")
    np.savez(tmp_path / "other.npz", vectors=np.ones(3))
    np.savez(tmp_path / "pickled.npz", described=np.array({"format": 1}, dtype=object))
    for name in ("junk", "other", "pickled"):
        with pytest.raises(InputError, match=rf"{name}.npz' cannot be read as an embedding of"):
            ShapeEmbedding.load(tmp_path / f"{name}.npz")
    given = ShapeEmbedding(4, metric="precomputed").fit(
        np.abs(np.subtract.outer(*[np.arange(9)] * 2))
    )
    with pytest.raises(InputError, match="only an embedding of vectors can be saved"):
        given.save(tmp_path / "given.npz")
