"""How long until the first answer of a new process? Import, --help, and a first query.

Every figure is the median over fresh processes, after one that fills the caches of Python and of
numba. The process itself is a Python that does nothing: what it takes is given beside. `rankfold
query` asks an index of 25,000 points on disk by id; `first query` fits points of its own.

On a machine that has never answered a query, code is compiled. Each row has a first default query
of a process whose cache of numba is empty, from the data to the answer, and again with what the
first one left there; what of it numba reports as compiling stands beside. Up to 20,000 points
weights are in double precision, beyond in single, which are two kinds of code.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from kit.pictures import GREY, INK, RIGHT, plot, pretty
from kit.report import Goal, options, publish, table, versions
from kit.timing import seconds

from rankfold import Index
from rankfold.datasets.synthetic import sheets

RUNS, N_POINTS = 7, 6_000
COMPILED, MOST_COMPILING = (12_000, 25_000), 6.0
FIRST_QUERY = f"""
import json
from time import perf_counter
times, last = {{}}, perf_counter()
def step(name):
    global last
    now = perf_counter()
    times[name], last = now - last, perf_counter()
from rankfold import RAN
from rankfold.datasets.synthetic import sheets
step("import")
X = sheets({N_POINTS}).X
step("make the points")
ran = RAN(n_neighbors=10, smoothness=1.0, solver="region", fusion="none").fit(X)
step("fit")
ran.rank(0, top=100)
step("first query")
ran.rank(1, top=100)
step("second query")
print(json.dumps(times))
"""

ASKED = {"rows, by RAN": "RAN().fit(X).rank(3, top=100)",
         "an id, by Index": "Index.build(X, layout='none').query(3, top=100)"}  # fmt: skip
COMPILE = """
import json, sys
from time import perf_counter
from numba.core import event
from rankfold import RAN, Index
from rankfold.datasets.synthetic import sheets
began, spent = [], [0.0]
class Compilation(event.Listener):
    def on_start(self, _):
        began.append(perf_counter())
    def on_end(self, _):
        took = perf_counter() - began.pop()
        spent[0] += 0.0 if began else took
event.register("numba:compile", Compilation())
X = sheets(int(sys.argv[1])).X
start = perf_counter()
{asked}
print(json.dumps([perf_counter() - start, spent[0]]))
"""


def run(command, **variables):
    """Return the seconds of a whole process, and what it printed; Python may keep its bytecode."""
    settings = {"check": True, "capture_output": True, "text": True}
    variables = {**os.environ, "PYTHONDONTWRITEBYTECODE": "", **variables}
    took, done = seconds(lambda: subprocess.run(command, env=variables, **settings))  # noqa: S603
    return took, done.stdout


def measure(folder):
    """Run every command in turns, and yield a row for each."""
    index = Path(folder) / "index"
    Index.build(sheets(COMPILED[-1]).X, path=index).close()
    python, script = sys.executable, str(Path(sys.executable).with_name("rankfold"))
    commands = {
        "python alone": [python, "-c", "pass"],
        "import rankfold": [python, "-c", "import rankfold"],
        "rankfold --help": [script, "--help"],
        "rankfold query": [script, "query", str(index), "--id", "3"],
        "first query": [python, "-c", FIRST_QUERY],
    }
    whole, parts = {name: [] for name in commands}, []
    for turn in range(RUNS + 1):
        for name, command in commands.items():
            took, printed = run(command)
            if turn:
                whole[name].append(took)
                parts += [json.loads(printed)] if name == "first query" else []
    spent = {f"process: {name}": times for name, times in whole.items()}
    spent |= {f"in it: {name}": [part[name] for part in parts] for name in parts[0]}
    for name, times in spent.items():
        yield {"what": name, "median s": float(np.median(times)), "most s": max(times)}


def measure_compilation():
    """Yield a row for each kind of code and way to ask, with an empty cache and with a full one."""
    for n_points in COMPILED:
        for name, asked in ASKED.items():
            command = [sys.executable, "-c", COMPILE.replace("{asked}", asked), str(n_points)]
            with TemporaryDirectory() as cache:
                cold, warm = (json.loads(run(command, NUMBA_CACHE_DIR=cache)[1]) for _ in range(2))
            yield {"first query": f"{n_points:,} points: {name}", "s": cold[0],
                   "of that compiling": cold[1], "again": warm[0],
                   "again, compiling": warm[1]}  # fmt: skip


def measure_warm_up():
    """Yield the seconds of compiling everything ahead."""
    script = str(Path(sys.executable).with_name("rankfold"))
    with TemporaryDirectory() as cache:
        cold, warm = (run([script, "warm-up"], NUMBA_CACHE_DIR=cache)[0] for _ in range(2))
    yield {"command": "rankfold warm-up", "s": cold, "again": warm}


def picture(rows):
    shown = [row for row in rows if row["what"].startswith("in it")]
    figure, (axes,) = plot(
        "The first answer of a new process",
        f"{N_POINTS:,} points: where the time goes, from starting Python to the second answer",
        size=(9.0, 4.2),
    )
    times = {row["what"]: row["median s"] for row in rows}
    bars = {"start Python": times["process: python alone"]}
    bars |= {row["what"].removeprefix("in it: "): row["median s"] for row in shown}
    for place, (name, value) in enumerate(reversed(bars.items())):
        axes.barh(place, value, color=RIGHT if "query" in name else GREY, height=0.55)
        axes.annotate(pretty(value), (value, place), (6, -3.5), textcoords="offset points",
                      color=INK, fontsize=9)  # fmt: skip
    axes.set_yticks(range(len(bars)), list(reversed(bars)))
    axes.set(xlabel="seconds", xlim=(0, 1.2 * max(bars.values())))
    axes.grid(visible=False, axis="y")
    figure.subplots_adjust(left=0.16, top=0.76, bottom=0.15)
    return figure


def main():
    arguments = options(__doc__).parse_args()
    print(f"{RUNS} runs of five processes, in turns", flush=True)
    with TemporaryDirectory() as folder:
        rows = table(measure(folder))
    compiled, ahead = table(measure_compilation()), table(measure_warm_up())
    times = {row["what"]: row["median s"] for row in rows}
    goals = [
        Goal("process: import rankfold", times["process: import rankfold"], most=0.5, unit="s"),
        Goal("process: rankfold --help", times["process: rankfold --help"], most=0.5, unit="s"),
        Goal("process: rankfold query", times["process: rankfold query"], most=1.0, unit="s"),
        Goal("first query, from the call to the answer", times["in it: first query"], most=1.0,
             unit="s"),
        Goal("compiling, for the first query of all", most=MOST_COMPILING, unit="s",
             measured=max(row["of that compiling"] for row in compiled)),
    ]  # fmt: skip
    _, *paragraphs = __doc__.split("\n\n")
    intro = [*"\n\n".join(paragraphs).splitlines(), "", versions("rankfold", "numba", "numpy")]
    alt = "Seconds of every step of a new process up to its second answer."
    tables = {"Processes": rows, "The first query of all": compiled, "Compiled ahead": ahead}
    publish("cold_start", "cold start", intro, tables, goals, picture(rows), alt, arguments.docs)


if __name__ == "__main__":
    main()
