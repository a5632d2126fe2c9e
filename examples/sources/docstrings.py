"""A labelled corpus that every machine with rankfold has: the documentation of its libraries.

What a public function or class of NumPy, SciPy or scikit-learn is for, in the first
paragraph of its docstring. The label is its subject, the name of the subpackage: both
``numpy.linalg`` and ``scipy.linalg`` are "linalg".
"""

import inspect
import re
from collections import Counter
from importlib import import_module
from typing import NamedTuple

SUBPACKAGES = {
    "numpy": "fft linalg polynomial random",
    "scipy": "cluster.hierarchy cluster.vq fft integrate interpolate io linalg ndimage optimize "
    "signal sparse sparse.csgraph sparse.linalg spatial spatial.distance special stats",
    "sklearn": "cluster compose covariance datasets decomposition ensemble feature_extraction "
    "feature_selection gaussian_process impute inspection linear_model manifold metrics mixture "
    "model_selection naive_bayes neighbors neural_network preprocessing svm tree",
}
FEWEST = 20
"""Subjects with fewer texts are left out: there would be little to find."""

GIVES_AWAY = re.compile(r"\b(?:numpy|scipy|sklearn|scikit-learn|np)\b(?:\.\w+)*", re.IGNORECASE)
MARKUP = re.compile(r":[\w:]+:`~?|[`*\\]")
SIGNATURE = re.compile(r"\w+\(.*\)", re.DOTALL)
NOTE = re.compile(r"\.\. ")


class Text(NamedTuple):
    """A text, what it is about, and what it documents."""

    name: str
    subject: str
    words: str


def load() -> list[Text]:
    """Return all texts in a fixed order; the same object, or the same words, only once."""
    texts: list[Text] = []
    objects: set[int] = set()
    seen: set[str] = set()
    for package in (f"{lib}.{sub}" for lib, subs in SUBPACKAGES.items() for sub in subs.split()):
        module = import_module(package)
        for name in sorted(module.__all__):
            thing = vars(module).get(name)  # some names are made only when they are asked for
            words = purpose(inspect.getdoc(thing) or "")
            is_new = callable(thing) and id(thing) not in objects and words.lower() not in seen
            if is_new and len(words.split()) > 2:
                texts.append(Text(f"{package}.{name}", package.split(".")[1], words))
                objects.add(id(thing))
                seen.add(words.lower())
    sizes = Counter(text.subject for text in texts)
    return [text for text in texts if sizes[text.subject] >= FEWEST]


def purpose(docstring: str) -> str:
    """Return the first paragraph in plain words, without names that give the label away."""
    paragraphs = docstring.split("\n\n")
    plain = (part for part in paragraphs if not SIGNATURE.match(part) and not NOTE.match(part))
    return " ".join(GIVES_AWAY.sub("", MARKUP.sub("", next(plain, ""))).split())
