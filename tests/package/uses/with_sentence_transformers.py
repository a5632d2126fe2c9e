"""Makes vectors of texts by a model of sentence-transformers, made here and saved by its name."""

from sentence_transformers import SentenceTransformer
from sentence_transformers.models import StaticEmbedding
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from rankfold.inputs import Embedder

tokenizer = Tokenizer(WordLevel({"[UNK]": 0, "chess": 1, "go": 2}, unk_token="[UNK]"))  # noqa: S106
tokenizer.pre_tokenizer = Whitespace()
SentenceTransformer(modules=[StaticEmbedding(tokenizer, embedding_dim=8)]).save(
    "sentence-transformers/tiny"
)
one, other, again = Embedder("sentence-transformers/tiny")(["chess", "go", "chess"])
assert one.shape == (8,)
assert (one == again).all()
assert (one != other).any()
