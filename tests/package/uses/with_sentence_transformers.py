"""Makes vectors of texts by a model of sentence-transformers, which was downloaded before.

It is made here, or all-MiniLM-L6-v2 from the folder that is given. Nobody answers for Hugging Face.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

os.environ |= {
    "HF_HOME": str(Path("downloaded").absolute()),
    "HF_ENDPOINT": "http://127.0.0.1:9",
    "NO_COLOR": "1",
}

from sentence_transformers import SentenceTransformer
from sentence_transformers.models import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from rankfold.errors import EmbedderError
from rankfold.inputs import Embedder

NOTES = {
    "chess": "A chess engine analyses positions on the board",
    "gimp": "Edit images: layers and undo steps",
    "go": "A board game from China played with stones",
    "krita": "A painting program for artists with brushes",
    "mail": "Read your mail in a terminal",
    "inkscape": "Vector drawing editor",
}


def made():
    """Return the folder of a model that knows two words."""
    tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "chess": 1, "board": 2}, unk_token="[UNK]"))  # noqa: S106
    tokenizer.pre_tokenizer = Whitespace()
    SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)]).save("made")
    return Path("made")


def downloaded(folder, name):
    """Lay a model where it is when it was downloaded."""
    place = Path("downloaded", "hub", f"models--sentence-transformers--{name}")
    version = "0" * 40
    shutil.copytree(folder, place / "snapshots" / version)
    (place / "refs").mkdir()
    (place / "refs" / "main").write_text(version)


def rankfold(*words):
    """Run a command that must say nothing beside what it was asked for."""
    command = [sys.executable, "-m", "rankfold", *words]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, ""), ended.stderr
    return ended.stdout


given = sys.argv[1:]
name = "all-MiniLM-L6-v2" if given else "tiny"
downloaded(given[0] if given else made(), name)
one, other, again = Embedder(f"sentence-transformers/{name}")(["chess", "board", "chess"])
assert one.shape == (384 if given else 8,)
assert abs(one - again).max() < 1e-6
assert abs(one - other).max() > 0.01

lines = "".join(f'{key},"{text}"\n' for key, text in NOTES.items())
Path("notes.csv").write_text(f"id,text\n{lines}")
embedded = ("--embedder", f"sentence-transformers/{name}", "--text-column", "text")
assert f"{len(one)} features" in rankfold("index", "build", "notes.csv", *embedded, "-o", "notes")
asked = ("query", "notes", "--format", "csv", "--top", "1", "--text")
assert rankfold(*asked, "chess").splitlines()[1].startswith("1,chess,")
if given:
    assert rankfold(*asked, "undo in a picture editor").splitlines()[1].startswith("1,gimp,")
    near, far, same = Embedder(f"sentence-transformers/{name}")(
        ["a chess game", "tax law", "A game of chess"]
    )
    assert near @ same > 0.9
    assert near @ far < 0.3

# A folder of this name may hold code, and is not what the name says.
Path("sentence-transformers", name).mkdir(parents=True)
try:
    Embedder(f"sentence-transformers/{name}")(["chess"])
except EmbedderError as error:
    assert "there is a folder of this name" in str(error)  # noqa: PT017
else:
    raise AssertionError
