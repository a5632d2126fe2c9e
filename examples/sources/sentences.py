"""Turn texts into vectors with WordLlama, a small model that comes inside its own package."""

from collections.abc import Sequence
from pathlib import Path

from rankfold.errors import MissingExtraError
from rankfold.types import FloatArray


def embed(texts: Sequence[str]) -> FloatArray:
    """Return 256 numbers for every text; texts of like meaning have a small angle."""
    try:
        import wordllama
    except ImportError:
        raise MissingExtraError("wordllama", "examples") from None
    # The model is there already: nothing may be downloaded.
    home = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=home, disable_download=True)
    vectors: FloatArray = model.embed(list(texts), norm=True)
    return vectors
