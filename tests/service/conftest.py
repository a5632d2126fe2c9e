"""A service over digits."""

import pytest
from running_service import running

from rankfold import Index, datasets
from rankfold.service import create_app

SOURCE = {"images": {"size": [8, 8], "colour": False, "scale": 16}}


@pytest.fixture(scope="session")
def digits():
    return datasets.load("digits")


@pytest.fixture(scope="session")
def index(digits):
    """Return digits 0 to 499, to be read only."""
    ids = [f"d{row}" if row % 5 == 0 else row for row in range(500)]
    payload = {"digit": digits.labels[:500], "even": digits.labels[:500] % 2 == 0}
    with Index.build(digits.X[:500], ids, payload, source=SOURCE) as built:
        yield built


@pytest.fixture(scope="session")
def client(index):
    with running(create_app({"digits": index})) as client:
        yield client


@pytest.fixture
def ask(client):
    """Return a function that posts to the index of digits and returns the JSON of the answer."""

    def post(verb, body, status=200):
        response = client.post(f"/v1/indexes/digits/{verb}", json=body)
        assert response.status_code == status, response.text
        return response.json()

    return post
