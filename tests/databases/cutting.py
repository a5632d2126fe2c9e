"""A way to a PostgreSQL server that is cut off just when an answer comes back."""

import socket
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from selectors import EVENT_READ, DefaultSelector
from threading import Thread

SOCKET = ".s.PGSQL.5432"


@contextmanager
def cut_after(server, word, for_good=False):
    """Yield a folder with a socket: whoever sends ``word`` through it is heard, but not answered.

    The first who does so is cut off; later ones get through, unless it is ``for_good``.
    """
    with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX) as listening:
        path = Path(folder) / SOCKET
        listening.bind(str(path))
        listening.listen()
        words = [word]

        def cut():
            words.clear()
            if for_good:
                path.unlink()

        Thread(target=_accept, args=(listening, server, words, cut), daemon=True).start()
        yield folder
        listening.shutdown(socket.SHUT_RDWR)


def _accept(listening, server, words, cut):
    while True:
        try:
            client, _ = listening.accept()
        except OSError:
            return
        Thread(target=_pass_on, args=(client, server, words, cut), daemon=True).start()


def _pass_on(client, server, words, cut):
    # Not by select(), which knows no file beyond the 1,024th that a process has open.
    with (
        client,
        socket.socket(socket.AF_UNIX) as there,
        DefaultSelector() as both,
        suppress(OSError),
    ):
        there.connect(str(server.folder / SOCKET))
        both.register(client, EVENT_READ)
        both.register(there, EVENT_READ)
        while True:
            sender = both.select()[0][0].fileobj
            data = sender.recv(2**16)
            if not data:
                return
            (there if sender is client else client).sendall(data)
            if sender is client and words and words[0] in data:
                cut()
                there.recv(2**16)  # the answer, which nobody will get
                return
