import csv
import json
import re
from io import StringIO

import numpy as np
import pytest

from rankfold.evaluation import Evaluation
from rankfold.evaluation.results import JSON_FIELDS, Row

STRANGE = r"50% _of_ {a} & b\c #1 $x^2~ a|b"


@pytest.fixture(scope="module")
def found():
    rng = np.random.default_rng(0)
    plain = {name: rng.random(40) for name in ("ndcg@10", "r_precision")}
    better = {name: np.minimum(1, values + 0.2) for name, values in plain.items()}
    values = {"distance": plain, "better": better, STRANGE: plain}
    return Evaluation("a data set", tuple(range(40)), values, plain, tuple(plain), base="distance")


def test_json_rows(found):
    rows = json.loads(found.to_json())
    assert len(rows) == 6
    for record, row in zip(rows, found.table(), strict=True):
        assert tuple(record) == JSON_FIELDS
        assert all(record[key] == getattr(row, key) for key in JSON_FIELDS)


def test_csv_rows(found):
    records = list(csv.DictReader(StringIO(found.to_csv())))
    for record, row in zip(records, found.table(), strict=True):
        p_value = float(record.pop("p_value")) if row.p_value is not None else record.pop("p_value")
        numbers = {key: float(record[key]) for key in ("mean", "low", "high", "harm")}
        again = Row(
            **{**record, **numbers, "n_queries": int(record["n_queries"])}, p_value=p_value or None
        )
        assert again == row


def test_markdown_rows(found):
    lines = found.to_markdown().splitlines()
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in lines if line.startswith("|")]
    assert {len(row) for row in cells} == {8}
    assert len(cells) == 2 + 6
    for row, expected in zip(cells[2:], found.table(), strict=True):
        texts = [cell.strip() for cell in row]
        assert texts[1:3] == [expected.metric, expected.method.replace("|", r"\|")]
        assert float(texts[4]) == pytest.approx(expected.mean, abs=5e-5)
        assert texts[6] == f"{expected.harm:.1%}"


def test_latex_is_balanced_and_escaped(found):
    text = found.to_latex()
    body = re.sub(r"^%.*\n", "", text, flags=re.MULTILINE)
    assert re.findall(r"\\(?:begin|end)\{(\w+)\}", body) == ["tabular", "tabular"]
    bare = re.sub(r"\\[&%$#_{}\\]", "", body)
    assert bare.count("{") == bare.count("}")
    assert not re.search(r"[%$#_^~<]", bare)
    rows = [line for line in body.splitlines() if line.endswith(r"\\")]
    assert len(rows) == 1 + 6
    assert {len(re.findall(r"(?<!\\)&", row)) for row in rows} == {7}
    assert body.count(r"\midrule") == 2


def test_text_is_plain_and_names_the_base(found):
    text = found.to_text(width=120)
    assert text.isascii()
    assert "a data set, 40 queries" in text
    assert "[" not in text
    assert "paired randomisation test against distance" in text
    assert max(map(len, text.splitlines())) <= 120
    (line,) = [line for line in text.splitlines() if "ndcg@10" in line and "better" in line]
    cells = [cell.strip() for cell in line.split("|")[1:-1]]
    row = next(row for row in found.table() if (row.method, row.metric) == ("better", "ndcg@10"))
    interval = f"{row.low:.4f} - {row.high:.4f}"
    assert cells == ["ndcg@10", "better", "40", f"{row.mean:.4f}", interval, "0.0%", "<0.001"]


def test_markup_in_names_is_not_interpreted():
    values = {"r_precision": np.ones(3)}
    names = ("r_precision",)
    found = Evaluation("[red]x[/red]", (0, 1, 2), {"[bold]m[/bold]": values}, values, names)
    text = found.to_text()
    assert "[red]x[/red]" in text
    assert "[bold]m[/bold]" in text
