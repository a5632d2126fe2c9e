"""Attaches to a collection in a file of Milvus Lite."""

from pymilvus import MilvusClient

from rankfold import Collection, Index, datasets

X = datasets.load("moons").X.astype("float32")
client = MilvusClient("./vectors.db")
client.create_collection("moons", dimension=X.shape[1], metric_type="L2")
client.insert("moons", [{"id": row, "vector": vector.tolist()} for row, vector in enumerate(X)])
client.close()
with Collection.attach("milvus:///./vectors.db", "moons", n_neighbors=10) as collection:
    found = list(collection.query(0, top=5))
with Index.build(X, n_neighbors=10) as index:
    assert list(index.query(0, top=5)) == found
