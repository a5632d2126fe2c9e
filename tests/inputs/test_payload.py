import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from rankfold.errors import InputError
from rankfold.inputs import as_columns


def plain_only(columns):
    return all(
        type(value) in (int, float, bool, str, type(None))
        for column in columns.values()
        for value in column
    )


def test_dict_of_sequences():
    columns = as_columns(
        {
            "whole": np.array([1, 2], dtype=np.int8),
            "real": [np.float32(0.5), float("nan")],
            "truth": (np.True_, False),
            "text": np.array(["a", "b"]),
            "day": [dt.date(2024, 2, 29), np.datetime64("2024-02-29")],
            "moment": [dt.datetime(2024, 2, 29, 1, tzinfo=dt.UTC), np.datetime64("NaT")],
            "fine": np.array(["2024-02-29T01:02:03.5", "NaT"], dtype="datetime64[ns]"),
            "money": [Decimal("1.25"), Decimal("NaN")],
            "made": (letter for letter in "xy"),
        },
        2,
    )
    assert columns == {
        "whole": [1, 2],
        "real": [0.5, None],
        "truth": [True, False],
        "text": ["a", "b"],
        "day": ["2024-02-29", "2024-02-29"],
        "moment": ["2024-02-29T01:00:00+00:00", None],
        "fine": ["2024-02-29T01:02:03.500000", None],
        "money": [1.25, None],
        "made": ["x", "y"],
    }
    assert plain_only(columns)


def test_frame_and_table_agree():
    frame = pd.DataFrame(
        {
            "whole": pd.array([1, None], dtype="Int64"),
            "real": [0.5, np.nan],
            "kind": pd.Categorical(["tea", None]),
            "text": ["x", None],
            "moment": pd.to_datetime(["2024-02-29 12:00", None]),
            "truth": [True, False],
        }
    )
    expected = {
        "whole": [1, None],
        "real": [0.5, None],
        "kind": ["tea", None],
        "text": ["x", None],
        "moment": ["2024-02-29T12:00:00", None],
        "truth": [True, False],
    }
    assert as_columns(frame, 2) == expected
    assert as_columns(pa.Table.from_pandas(frame), 2) == expected
    assert plain_only(as_columns(frame, 2))


def test_files(tmp_path):
    frame = pd.DataFrame({"price": [1.5, None], "stock": [3, 4], "name": ["tea", "milk"]})
    expected = {"price": [1.5, None], "stock": [3, 4], "name": ["tea", "milk"]}
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_csv(tmp_path / "p.csv", index=False)
    frame.to_csv(tmp_path / "p.tsv", index=False, sep="\t")
    for name in ("p.parquet", "p.csv", "p.tsv"):
        assert as_columns(str(tmp_path / name), 2) == expected
        with pytest.raises(InputError, match=f"{name}' has 2 values, but there are 3 rows"):
            as_columns(tmp_path / name, 3)


def test_nothing():
    assert as_columns(None, 4) == {}
    assert as_columns({}, 4) == {}


BAD = {
    "nested": ({"tags": [["a"], ["b"]]}, "column 'tags' of the payload holds .*list"),
    "dict": ({"tags": [{}, {}]}, "column 'tags' .*dict"),
    "bytes": ({"raw": [b"a", b"b"]}, "column 'raw' .*bytes"),
    "short": ({"x": [1]}, "column 'x' .* has 1 values, but there are 2 rows"),
    "scalar": ({"x": 1}, "column 'x' .* must be a list"),
    "string": ({"x": "ab"}, "column 'x' .* must be a list"),
    "infinite": ({"x": [1.0, np.inf]}, "column 'x' .*inf"),
    "huge": ({"x": [1, 2**63]}, "column 'x' .*64 bits"),
    "surrogate": ({"x": ["a", "\udcff"]}, "column 'x' .*Unicode"),
    "name": ({3: [1, 2]}, "column named 3"),
    "no name": ({"": [1, 2]}, "column named ''"),
    "two names": (pd.DataFrame([[1, 2], [3, 4]], columns=["x", "x"]), "several columns named 'x'"),
    "two names in a table": (pa.table([[1, 2], [3, 4]], ["x", "x"]), "several columns named 'x'"),
    "timedelta": ({"x": [dt.timedelta(1), None]}, "column 'x' .*timedelta"),
    "list": ([1, 2], "payload is list"),
    "suffix": (__file__, "ends in '.py'"),
    "missing": ("nowhere.csv", "there is no file 'nowhere.csv'"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(case):
    payload, message = BAD[case]
    with pytest.raises(InputError, match=message) as caught:
        as_columns(payload, 2)
    assert "\n" not in str(caught.value)


def test_table_libraries_are_not_imported():
    import subprocess

    code = (
        "from rankfold.inputs import as_columns; import sys; as_columns({'x': [1]}, 1); "
        "print({'pandas', 'pyarrow', 'PIL', 'h5py'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
