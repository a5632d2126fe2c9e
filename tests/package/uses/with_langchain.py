"""Retrieves documents of LangChain from an index."""

from langchain_core.embeddings import DeterministicFakeEmbedding

from rankfold import Index
from rankfold.integrations.langchain import IndexRetriever

embeddings = DeterministicFakeEmbedding(size=8)
texts = [f"note {number}" for number in range(30)]
with Index.build(embeddings.embed_documents(texts), payload={"text": texts}) as index:
    retriever = IndexRetriever(index=index, embeddings=embeddings, top=3)
    assert retriever.invoke("note 7")[0].page_content == "note 7"
