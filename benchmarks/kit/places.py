"""The same index in several places, asked in the same way."""

from typing import NamedTuple

from kit.databases import folder_bytes
from kit.timing import seconds
from rankfold import Index

TOP = 10
FOLDER = "folder"


class Answer(NamedTuple):
    """What came, and what it took; no proof that it is right without ``certified``."""

    seconds: float
    ids: list
    certified: bool = False
    trips: int = 0
    rows: int = 0


class Place:
    """An index in a folder, or the same in a database."""

    def __init__(self, path, here=None):
        self.name, self.path, self.here = here.name if here else FOLDER, path, here

    def open(self, write=False):
        """Open it anew."""
        return Index.open(self.path, write, engine=self.here.database if self.here else None)

    def ask(self, index, query, settings):
        """Ask an index that is open."""
        work = lambda: seconds(lambda: index.query(query, top=TOP, **settings))  # noqa: E731
        (took, results), counts = self.here.database.counting(work) if self.here else (work(), ())
        return Answer(took, results.ids, results.ranking.solution.certified, *counts)

    def cold(self, settings):
        """Return a function that asks an index which was just opened."""

        def ask(query):
            with self.open() as index:
                return self.ask(index, query, settings)

        return ask

    def warm(self, settings, earlier, stack):
        """Return a function that asks an index which has answered earlier queries.

        The index is closed with the stack.
        """
        index = stack.enter_context(self.open())
        for query in earlier:
            index.query(query, top=TOP, **settings)
        return lambda query: self.ask(index, query, settings)

    def knn(self, X):
        """Return a function that asks the database alone."""
        search = self.here.plain_search(self.path, TOP)
        search(X[0])
        return lambda query: Answer(*seconds(lambda: search(X[query])), trips=1)

    def room(self):
        """Return the bytes that it takes."""
        return self.here.room(self.path) if self.here else {"all": folder_bytes(self.path)}
