"""scikit-learn's own checks of its estimator contract."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from rankfold import RANKERS


@parametrize_with_checks([ranker() for ranker in RANKERS.values()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
