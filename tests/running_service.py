"""A service that runs on a free port while a test asks it."""

from contextlib import contextmanager
from threading import Thread
from time import monotonic, sleep

import httpx
import uvicorn

KEY = "a-key-for-the-tests"
BEARER = {"Authorization": f"Bearer {KEY}"}


@contextmanager
def running(app, port=0, **options):
    """Serve an app and return a client for it; port 0 is a free one."""
    config = uvicorn.Config(
        app, port=port, ws="none", log_config=None, access_log=False, server_header=False, **options
    )
    server = uvicorn.Server(config)
    with config.bind_socket() as socket:
        thread = Thread(target=server.run, args=([socket],))
        thread.start()
        while not server.started and thread.is_alive():  # until then, connections are refused
            sleep(0.01)
        address = f"http://127.0.0.1:{socket.getsockname()[1]}"
        try:
            with httpx.Client(base_url=address, timeout=60) as client:
                yield client
        finally:
            server.should_exit = True
            thread.join()


def wait_until(condition, seconds=30):
    """Wait for something that must become true, and fail where it does not."""
    end = monotonic() + seconds
    while not condition():
        assert monotonic() < end, f"not within {seconds} seconds"
        sleep(0.001)
