"""Does the service keep its memory? A quarter of an hour of all that clients send.

Some clients at a time send requests of every kind, good and bad, one after the other: queries by
all sorts of examples and all methods, by words, in groups, of some points alone; explanations,
lookups, lists, maps, metrics, broken JSON, unknown ids, wrong keys; and changes, in which points
that were added are removed again. One in twenty varies smoothness and the number of neighbours. Up
to 5,000 points each of these, and every change, needs new factors of the whole graph. The service
is a process of its own, with a key. What it holds in memory is looked at every few seconds; a line
through the second half says how fast it grows. The uncertainty is two standard errors, for as many
samples as are independent of each other (by the correlation of neighbouring ones).
"""

import secrets
import sys
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic, sleep

import httpx
import numpy as np
from kit.load import process
from kit.memory import own_mb, resident_mb
from kit.mixture import Mixture
from kit.pictures import GREY, RIGHT, WRONG, plot
from kit.report import OUT, Goal, options, publish, table, versions

from rankfold import RANKERS, Index
from rankfold.datasets.synthetic import sheets

N_POINTS, N_SHEETS, N_CLIENTS = 4_900, 10, 4
EVERY = 2.0
"""Seconds between looks at the memory."""

NAME = "sheets"
MOST_GROWTH = 0.02


def build(folder, n_points):
    """Build the index, and return its folder and the number of its features."""
    data = sheets(n_points, n_sheets=N_SHEETS)
    X = data.X.astype(np.float32)
    print(f"building an index of {n_points:,} points", flush=True)
    names = [f"point {number} of sheet {sheet}" for number, sheet in enumerate(data.labels)]
    Index.build(X, payload={"sheet": data.labels, "name": names}, path=folder / NAME).close()
    return folder / NAME, X.shape[1]


def warm(service, key):
    """Wait for answers of every method: code is compiled when it is first used."""
    headers = {"Authorization": f"Bearer {key}"}
    with httpx.Client(base_url=service.address, headers=headers, timeout=120) as client:
        for method in RANKERS:
            body = {"queries": [{"ids": [0], "method": method}]}
            while client.post(f"/v1/indexes/{NAME}/query", json=body).status_code != 200:
                sleep(1)


def soak(service, key, n_points, n_features, seconds):
    """Let clients ask, and look at the memory; return samples, statuses and kinds of requests."""
    start = monotonic()
    until = start + seconds
    clients = [
        Mixture(number, service.address, NAME, key, n_points, n_features, until)
        for number in range(N_CLIENTS)
    ]
    for client in clients:
        client.start()
    samples = []
    while (now := monotonic()) < until:
        samples.append((now - start, resident_mb(service.number), own_mb(service.number)))
        sleep(EVERY)
    for client in clients:
        client.join()
    statuses = sum((client.statuses for client in clients), Counter())
    return np.array(samples), statuses, sum((client.kinds for client in clients), Counter())


def line_through(seconds, values):
    """Return the slope of a line, two standard errors of it, and its value at the middle."""
    centred = seconds - seconds.mean()
    slope = centred @ values / (centred @ centred)
    rest = values - values.mean() - slope * centred
    spread = rest @ rest
    alike = float(np.clip(rest[1:] @ rest[:-1] / spread, 0, 0.99)) if spread else 0.0
    n_independent = max(3.0, len(values) * (1 - alike) / (1 + alike))
    error = np.sqrt(spread / len(values) * n_independent / (n_independent - 2))
    error /= np.sqrt(n_independent) * centred.std()
    return float(slope), 2 * float(error), float(values.mean())


def growth(samples):
    """Return a row for all that is resident, and one for what is no file."""
    half = samples[samples[:, 0] >= samples[-1, 0] / 2]
    length = half[-1, 0] - half[0, 0]
    for place, what in enumerate(("all", "without files"), 1):
        slope, error, middle = line_through(half[:, 0], half[:, place])
        marks = {f"after {share:.0%} MB": share for share in (0.1, 0.5, 1.0)}
        found = np.searchsorted(samples[:, 0], [share * samples[-1, 0] for share in marks.values()])
        yield {
            "memory": what,
            **dict(zip(marks, samples[found, place].tolist(), strict=True)),
            "most MB": float(samples[:, place].max()),
            "in the second half": slope * length / middle,
            "+-": error * length / middle,
            "an hour": slope * 3600 / middle,
            "an hour +-": error * 3600 / middle,
        }


def judge(rows, statuses):
    failed = sum(n for status, n in statuses.items() if status >= 500 and status != 503)
    return [
        Goal("growth in the second half", rows[0]["in the second half"], most=MOST_GROWTH),
        Goal("its uncertainty", rows[0]["+-"], most=MOST_GROWTH),
        Goal("answers of 5xx, other than 503", failed, most=0),
    ]


def picture(samples, n_points):
    title = "What the service holds in memory under load of every kind"
    subtitle = f"{n_points:,} points, {N_CLIENTS} clients; dashed: the line through the second half"
    figure, (axes,) = plot(title, subtitle)
    minutes = samples[:, 0] / 60
    for place, what, color in ((1, "all", RIGHT), (2, "without files", GREY)):
        axes.plot(minutes, samples[:, place], color=color, linewidth=1.3)
        axes.annotate(what, (minutes[-1], samples[-1, place]), (6, -3), color=color, fontsize=9,
                      textcoords="offset points", annotation_clip=False)  # fmt: skip
    half = samples[:, 0] >= samples[-1, 0] / 2
    slope, _, middle = line_through(samples[half, 0], samples[half, 1])
    line = middle + slope * (samples[half, 0] - samples[half, 0].mean())
    axes.plot(minutes[half], line, "--", color=WRONG, linewidth=1.3)
    axes.set(xlabel="minutes", ylabel="MB", ylim=(0, 1.15 * samples[:, 1].max()))
    figure.subplots_adjust(right=0.86)
    return figure


def main():
    parser = options(__doc__)
    parser.add_argument("--seconds", type=int, default=900)
    parser.add_argument("--points", type=int, default=N_POINTS)
    arguments = parser.parse_args()
    key = secrets.token_urlsafe(32)
    script = str(Path(sys.executable).with_name("rankfold"))
    with TemporaryDirectory(prefix="rankfold-soak-") as folder:
        index, n_features = build(Path(folder), arguments.points)
        command = [script, "serve", str(index), "--port", "0", "--log-level", "warning"]
        with process(command, OUT / "soak.log", RANKFOLD_API_KEY=key) as service:
            warm(service, key)
            samples, statuses, kinds = soak(
                service, key, arguments.points, n_features, arguments.seconds
            )
    asked = table({"request": kind, "sent": sent} for kind, sent in kinds.most_common())
    answered = table({"status": status, "answers": n} for status, n in sorted(statuses.items()))
    rows = table(growth(samples))
    intro = [
        *__doc__.split("\n\n")[1].splitlines(),
        "",
        f"{arguments.points:,} points on {N_SHEETS} sheets, {N_CLIENTS} clients, "
        f"{arguments.seconds:,} s, {sum(statuses.values()):,} requests. "
        + versions("rankfold", "fastapi", "uvicorn"),
    ]
    tables = {"Memory": rows, "Answers": answered, "Requests": asked}
    tables["Samples"] = [
        {"seconds": round(second), "all MB": all_mb, "without files MB": own}
        for second, all_mb, own in samples[:: max(1, len(samples) // 20)].tolist()
    ]
    publish("soak", "memory under load", intro, tables, judge(rows, statuses),
            picture(samples, arguments.points), "Memory by minutes.", arguments.docs)  # fmt: skip


if __name__ == "__main__":
    main()
