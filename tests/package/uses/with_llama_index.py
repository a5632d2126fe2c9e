"""Ranks nodes of LlamaIndex."""

import numpy as np
from llama_index.core import MockEmbedding
from llama_index.core.schema import NodeWithScore, QueryBundle, TextNode

from rankfold.integrations.llama_index import RankPostprocessor

vectors = np.random.default_rng(0).random((30, 8)).tolist()
nodes = [
    NodeWithScore(node=TextNode(text=f"note {row}", embedding=vector), score=0)
    for row, vector in enumerate(vectors)
]
query = QueryBundle("note 7", embedding=vectors[7])
found = RankPostprocessor(embed_model=MockEmbedding(8), top=3).postprocess_nodes(nodes, query)
assert found[0].text == "note 7"
