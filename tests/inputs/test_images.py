import struct
import zlib

import numpy as np
import pytest
from PIL import Image

from rankfold.errors import InputError
from rankfold.inputs import read_points, read_vectors

ENDINGS = ["png", "jpg", "jpeg", "gif", "bmp", "webp", "tif", "tiff"]


@pytest.fixture
def folder(tmp_path):
    """Return a folder of grey images, each of one shade, three of them in folders."""
    for shade, name in enumerate(["b.png", "a.jpg", "cats/x.PNG", "cats/old/y.gif", "dogs/x.bmp"]):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (40, 30), 50 * shade).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("no image")
    (tmp_path / ".hidden.png").write_bytes(b"no image")
    return tmp_path


def test_folder(folder):
    points = read_points(folder)
    names = ["a.jpg", "b.png", "cats/old/y.gif", "cats/x.PNG", "dogs/x.bmp"]
    assert points.ids == names
    assert points.payload == {"image": names, "folder": ["", "", "cats/old", "cats", "dogs"]}
    assert points.vectors.shape == (5, 1024)
    assert points.vectors.dtype == np.float32
    expected = np.array([50, 0, 150, 100, 200]) / 255
    assert np.allclose(points.vectors, expected[:, None], atol=1 / 255)
    assert read_points(folder, size=(8, 4)).vectors.shape == (5, 32)
    assert read_points(folder / "dogs").payload == {"image": ["x.bmp"]}


def test_bar_is_on_standard_error(folder, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    read_points(folder, progress=True)
    shown = capsys.readouterr()
    assert "images" in shown.err
    assert shown.out == ""
    read_points(folder)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_kind_of_image(tmp_path, ending):
    Image.new("L", (10, 10), 200).save(tmp_path / f"x.{ending}")
    assert np.allclose(read_points(tmp_path).vectors, 200 / 255, atol=2 / 255)


def test_pixels_go_row_by_row_and_keep_their_colour(tmp_path):
    pixels = np.arange(2 * 3 * 3, dtype=np.uint8).reshape(2, 3, 3) * 10
    Image.fromarray(pixels).save(tmp_path / "x.png")
    vectors = read_points(tmp_path, size=(3, 2), colour=True).vectors
    assert np.allclose(vectors[0], pixels.ravel() / 255)
    assert np.array_equal(read_vectors(tmp_path / "x.png", size=(3, 2), colour=True), vectors)


def test_sixteen_bits_transparency_and_turned_cameras(tmp_path):
    Image.fromarray(np.full((4, 4), 128 << 8, dtype=np.uint16)).save(tmp_path / "deep.png")
    Image.new("RGBA", (4, 4), (0, 0, 0, 0)).save(tmp_path / "glass.png")
    turned = Image.fromarray(np.array([[0], [255]], dtype=np.uint8))
    exif = turned.getexif()
    exif[0x0112] = 3  # upside down
    turned.save(tmp_path / "turned.png", exif=exif)
    deep, glass, upright = read_points(tmp_path, size=(1, 2)).vectors
    assert np.allclose(deep, 128 / 255)
    assert np.allclose(glass, 1)
    assert upright.tolist() == [1, 0]


def test_palette_and_bits(tmp_path):
    Image.new("1", (4, 4), 1).save(tmp_path / "bits.png")
    Image.new("P", (4, 4), 0).save(tmp_path / "palette.gif", transparency=0)
    assert np.allclose(read_points(tmp_path).vectors, 1)


def test_broken_images_are_named(folder):
    (folder / "cats/broken.png").write_bytes((folder / "b.png").read_bytes()[:45])
    (folder / "zero.jpg").write_bytes(b"")
    with pytest.raises(InputError, match=r"2 of 7 images .*'cats/broken.png', 'zero.jpg'"):
        read_points(folder)


@pytest.mark.parametrize("side", [10_000, 13_000, 100_000])
def test_too_many_pixels(tmp_path, side):
    head = b"IHDR" + struct.pack(">IIBBBBB", side, side, 8, 0, 0, 0, 0)
    chunk = struct.pack(">I", 13) + head + struct.pack(">I", zlib.crc32(head))
    body = struct.pack(">I", 0) + b"IDAT" + struct.pack(">I", zlib.crc32(b"IDAT"))
    (tmp_path / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunk + body)
    with pytest.raises(InputError, match=r"bomb.png'.* pixels"):
        read_points(tmp_path)


@pytest.mark.parametrize("size", [(0, 3), 32, (1, 2, 3), ("a", 3), (10**5, 10**5), (2.5, 3)])
def test_bad_sizes(folder, size):
    with pytest.raises(InputError, match="size"):
        read_points(folder, size=size)


def test_floating_point_pixels(tmp_path):
    Image.fromarray(np.ones((3, 3), dtype=np.float32)).save(tmp_path / "x.tif")
    with pytest.raises(InputError, match="32 bits"):
        read_points(tmp_path)
