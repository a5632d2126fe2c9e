from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image
from sklearn.datasets import load_digits

from rankfold import Index
from rankfold.cli.inputs import source_of
from rankfold.inputs import read_points
from rankfold.service.handlers import LONGEST_TEXT, Pixels, given_image, image_of, thumbnail

START = "data:image/png;base64,"


def opened(uri):
    assert uri.startswith(START)
    with Image.open(BytesIO(b64decode(uri.removeprefix(START), validate=True))) as image:
        image.load()
        assert image.format == "PNG"
        return image


def facts(images, features=64, metric="euclidean"):
    return {"source": {"images": images}, "features": features, "metric": metric}


def test_digits_come_back_as_they_were():
    X = load_digits().data[:3]
    source = {"images": {"size": [8, 8], "colour": False, "scale": 16}}
    with Index.build(X, source=source) as index:
        pixels = image_of(index.info())
        for row in range(3):
            image = opened(thumbnail(index.vectors(row)[0], pixels))
            assert (image.mode, image.size) == ("L", (8, 8))
            expected = np.rint(X[row].reshape(8, 8) * 255 / 16)
            np.testing.assert_array_equal(np.asarray(image), expected)


@pytest.mark.parametrize("colour", [False, True])
def test_folder_of_images_comes_back_as_it_was(tmp_path, colour):
    shape = (5, 7, 3) if colour else (5, 7)  # higher than wide would hide a mistake
    drawn = np.random.default_rng(0).integers(0, 256, (2, *shape), dtype=np.uint8)
    for name, pixels in zip("ab", drawn, strict=True):
        Image.fromarray(pixels).save(tmp_path / f"{name}.png")
    points = read_points(tmp_path, size=(7, 5), colour=colour)
    source = source_of(tmp_path, (7, 5), colour)
    with Index.build(points.vectors, points.ids, points.payload, source=source) as index:
        how = image_of(index.info())
        assert how == Pixels(7, 5, colour)
        for name, pixels in zip("ab", drawn, strict=True):
            image = opened(thumbnail(index.vectors(f"{name}.png")[0], how))
            np.testing.assert_array_equal(np.asarray(image), pixels)
            assert given_image(index.payload(f"{name}.png")["image"][0]) is None


def test_cosine_takes_its_largest_value_for_white():
    X = np.array([[1.0, 2.0, 4.0, 0.0], [30.0, 60.0, 0.0, 120.0]])
    source = {"images": {"size": [2, 2], "colour": False, "scale": 255}}
    with Index.build(X, metric="cosine", source=source) as index:
        pixels = image_of(index.info())
        images = [opened(thumbnail(vector, pixels)) for vector in index.vectors([0, 1])]
    assert np.asarray(images[0]).tolist() == [[64, 128], [255, 0]]
    assert np.asarray(images[1]).tolist() == [[64, 128], [0, 255]]


def test_values_beyond_black_and_white_are_clipped():
    vector = np.array([-3.0, 0.5, 1.0, 1e300])
    image = opened(thumbnail(vector, Pixels(4, 1, False, 1e-10)))
    assert np.asarray(image).tolist() == [[0, 255, 255, 255]]
    black = opened(thumbnail(-np.ones(4), Pixels(2, 2, False, None)))
    assert np.asarray(black).tolist() == [[0, 0], [0, 0]]


def test_large_pictures_are_made_smaller():
    image = opened(thumbnail(np.ones(400 * 300), Pixels(400, 300, False)))
    assert image.size == (128, 96)


@pytest.mark.parametrize(
    "images",
    [
        {"size": [8, 9], "colour": False},
        {"size": [8, 8], "colour": True},
        {"size": [-8, -8], "colour": False},
        {"size": [8], "colour": False},
        {"size": "88", "colour": False},
        {"size": [8.0, 8.0], "colour": False},
        {"size": [8, 8], "colour": "no"},
        {"size": [8, 8], "colour": False, "scale": 0},
        {"size": [8, 8], "colour": False, "scale": "16"},
        {"size": [8, 8], "colour": False, "scale": float("nan")},
        {"size": [8, 8], "colour": False, "scale": 10**400},
        {"colour": False},
        [8, 8],
        None,
    ],
)
def test_what_does_not_fit_is_no_picture(images):
    assert image_of(facts(images)) is None


def test_vectors_without_notes_are_no_pictures():
    with Index.build(np.eye(64)) as index:
        assert image_of(index.info()) is None


@pytest.mark.parametrize("kind", ["png", "jpeg", "gif", "webp"])
def test_pictures_in_the_payload_are_passed_on(kind):
    start = f"data:image/{kind};base64,"
    assert given_image(start + "AA==") == start + "AA=="
    longest = start + "A" * (LONGEST_TEXT - len(start))
    assert given_image(longest) == longest
    assert given_image(longest + "A") is None


@pytest.mark.parametrize(
    "value",
    [
        "data:image/svg+xml;base64,PHN2Zz4=",
        "data:text/html;base64,PGI+",
        "data:image/png,plain",
        "data:image/png;base64,",
        'data:image/png;base64,AA=="onerror=',
        "data:image/png;base64,AA==\n",
        "http://example.org/a.png",
        "/etc/passwd",
        7,
        None,
    ],
)
def test_nothing_else_is_passed_on(value):
    assert given_image(value) is None
