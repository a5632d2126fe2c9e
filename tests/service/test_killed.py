"""Services that end while they are written to: real processes, killed or told to end."""

import random
import time

import pytest
import writing_clients as writers
from running_service import KEY
from serving import PATIENCE, serving

from rankfold import Index

N_CLIENTS = 4


@pytest.mark.parametrize("n_kills", [1, pytest.param(5, marks=pytest.mark.slow)])
def test_every_answered_change_survives_a_kill(tmp_path, n_kills):
    path = tmp_path / "living"
    writers.create(path)
    chance = random.Random(0)
    clients = [writers.Client(number) for number in range(N_CLIENTS)]
    n_open = 0
    for _ in range(n_kills):
        with serving(path, RANKFOLD_API_KEY=KEY) as service:
            with writers.writing(clients, service.address, KEY) as answered:
                writers.wait_for(answered, chance.randrange(20, 150))
                time.sleep(chance.uniform(0, 0.05))
                service.process.kill()
            service.process.wait()
        n_open += sum(client.possible is not None for client in clients)
        with Index.open(path, write=chance.random() < 0.5) as index:
            writers.check(index, clients, certain=False)
    assert n_open  # or the kills came when nothing was under way


@pytest.mark.slow  # of one client, tests/cli/test_serve.py shows it
def test_told_to_end_it_answers_what_it_has_begun(tmp_path):
    path = tmp_path / "living"
    writers.create(path)
    clients = [writers.Client(number) for number in range(N_CLIENTS)]
    with serving(path, RANKFOLD_API_KEY=KEY) as service:
        with writers.writing(clients, service.address, KEY) as answered:
            writers.wait_for(answered, 40)
            service.process.terminate()
        assert service.process.wait(PATIENCE) == 0
    with Index.open(path, write=True) as index:
        writers.check(index, clients, certain=True)
