"""Attaches to a collection in a folder of Qdrant's local mode."""

from qdrant_client import QdrantClient
from qdrant_client.models import Distance, PointStruct, VectorParams

from rankfold import Collection, Index, datasets

X = datasets.load("moons").X.astype("float32")
client = QdrantClient(path="vectors")
client.create_collection("moons", VectorParams(size=X.shape[1], distance=Distance.EUCLID))
points = [PointStruct(id=row, vector=vector.tolist()) for row, vector in enumerate(X)]
client.upsert("moons", points)
client.close()
with Collection.attach("qdrant:///./vectors", "moons", n_neighbors=10) as collection:
    found = list(collection.query(0, top=5))
with Index.build(X, n_neighbors=10) as index:
    assert list(index.query(0, top=5)) == found
