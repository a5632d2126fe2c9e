"""Loads the package of OpenAI, which then finds that nobody answers."""

import os

from rankfold.errors import EmbedderError
from rankfold.inputs import Embedder

os.environ |= {"OPENAI_API_KEY": "none", "OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
try:
    Embedder("openai:text-embedding-3-small")(["chess"])
except EmbedderError as error:
    assert "openai:text-embedding-3-small" in str(error)  # noqa: PT017
else:
    raise AssertionError
