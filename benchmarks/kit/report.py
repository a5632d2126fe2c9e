"""Results as tables, as JSON, and as pages that say what was measured and on what."""

import argparse
import json
import os
import platform
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

OUT = Path("out/benchmarks")
DOCS = Path(__file__).parents[2] / "docs"


@dataclass
class Goal:
    """What was to be reached, and what was measured."""

    what: str
    measured: float
    least: float | None = None
    most: float | None = None
    must: float | None = None
    valid: bool = True
    unit: str = ""

    def keeps(self, bound):
        """Return whether the measured value is on the right side of a bound."""
        return self.measured >= bound if self.least is not None else self.measured <= bound

    @property
    def verdict(self) -> str:
        """Whether the goal was reached, or at least what must be."""
        if not self.valid:
            return "no: less accurate"
        if self.keeps(self.most if self.least is None else self.least):
            return "yes"
        return "no, but what must be" if self.must and self.keeps(self.must) else "no"

    def row(self):
        """Return a row of a table."""
        bound = f"at most {self.most:,g}" if self.least is None else f"at least {self.least:,g}"
        goal = f"{bound} {self.unit}".strip() + (f", must be {self.must:,g}" if self.must else "")
        measured = f"{self.measured:,.3g} {self.unit}".strip()
        return {"what": self.what, "measured": measured, "goal": goal, "reached": self.verdict}


def cell(value):
    if value is None:
        return ""
    if isinstance(value, float) and 1e4 <= abs(value) < 1e12:
        return f"{float(f'{value:.4g}'):,.0f}"
    return f"{value:,.4g}" if isinstance(value, float) else str(value)


def head(row):
    return ["| " + " | ".join(row) + " |", "|---" * len(row) + "|"]


def line(row):
    return "| " + " | ".join(cell(value) for value in row.values()) + " |"


def table(rows):
    """Print rows as they come, and return them."""
    printed = []
    for row in rows:
        if not printed:
            print("\n" + "\n".join(head(row)))
        print(line(row), flush=True)
        printed.append(row)
    return printed


def markdown(rows):
    return [*head(rows[0]), *map(line, rows)] if rows else []


def machine():
    """Return a sentence about this machine."""
    model = platform.processor() or platform.machine()
    facts = Path("/proc/cpuinfo")
    if facts.is_file():
        names = [ln for ln in facts.read_text().splitlines() if ln.startswith("model name")]
        model = names[0].split(":")[1].strip() if names else model
    return f"Measured on {os.cpu_count()} cores of {model}, Python {platform.python_version()}."


def versions(*packages):
    return "Versions: " + ", ".join(f"{name} {version(name)}" for name in packages) + "."


def options(description, large=None):
    """Return the parser that all benchmarks share."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--docs", action="store_true", help="write the page in docs as well")
    if large:
        parser.add_argument("--large", action="store_true", help=large)
    return parser


def replace_text(path, text):
    """Write a whole file or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.partial")
    partial.write_text(text)
    partial.replace(path)


def publish(name, title, intro, tables, goals, figure=None, alt="", docs=False, script=None):
    """Write results as JSON and picture, and with ``docs`` as a page.

    Parameters
    ----------
    name, title : str
    intro : list of str
        Lines: what was measured, and how.
    tables : dict
        Rows by heading.
    goals : list of Goal
    figure : Figure, optional
    alt : str
        What the picture shows.
    docs : bool
    script : str, optional
        What prints it, where that has another name.
    """
    print("\nGoals" if goals else "")
    judged = table(goal.row() for goal in goals)
    results = {"machine": machine(), "goals": [asdict(goal) for goal in goals], **tables}
    replace_text(OUT / f"{name}.json", json.dumps(results, indent=2) + "\n")
    pictures = [OUT / f"{name}.png"] + ([DOCS / "images" / f"{name}.png"] if docs else [])
    for path in pictures if figure else []:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial = path.with_name(f".{path.name}.partial")
        figure.savefig(partial, format="png")
        partial.replace(path)
    if docs:
        printed = f"Printed by `benchmarks/{script or name}.py`; do not edit."
        lines = [f"# Measured: {title}", "", printed, ""]
        lines += [*intro, "", machine(), ""]
        lines += [f"![{alt}](../images/{name}.png)", ""] if figure else []
        lines += ["## Goals", "", *markdown(judged), ""] if goals else []
        for heading, rows in tables.items():
            lines += [f"## {heading}", "", *markdown(rows), ""]
        replace_text(DOCS / "measured" / f"{name}.md", "\n".join(lines).rstrip() + "\n")
    print(f"\nwrote {OUT / name}.json" + (" and the page in docs" if docs else ""))
