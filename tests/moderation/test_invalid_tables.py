"""Match lists and daily samples with invalid values give an error with the line, no traceback."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import orjson
import pytest

from memantics.core.errors import DataError, InputError
from memantics.moderation.drift import COLUMNS, drift, read_sample
from memantics.moderation.match_list import import_match_list

_HASH = "0" * 64


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (f"hash,quality\n{_HASH},{'9' * 5000}\n", "line 2: '9{40}' is not a valid quality"),
        (f"hash,quality\n{_HASH},101\n", "line 2: '101' is not a valid quality"),
        (f"hash,quality\n{_HASH},100\n{'a' * 200_000},1\n", "line 3: field larger than"),
        (f"hash,text\n{_HASH},\xff\n".encode("latin-1"), "line 2: 'utf-8' codec"),
    ],
)
def test_an_invalid_match_list_names_the_line(
    body: str | bytes, problem: str, tmp_path: Path
) -> None:
    file = tmp_path / "list.csv"
    file.write_bytes(body if isinstance(body, bytes) else body.encode())
    with pytest.raises(InputError, match=problem):
        import_match_list(tmp_path / "detector.zip", file)


def test_a_pipe_is_not_a_match_list(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "list.csv")
    with pytest.raises(InputError, match=r"list\.csv cannot be read: not a regular file"):
        import_match_list(tmp_path / "detector.zip", tmp_path / "list.csv")


def _write_sample(folder: Path, **values: Any) -> Path:
    row = dict.fromkeys(COLUMNS) | {"id": "1", "status": "scored", "label": "harmful"} | values
    folder.mkdir()
    (folder / "sample-1.jsonl").write_bytes(orjson.dumps(row) + b"\n")
    return folder


@pytest.mark.parametrize("name", ["unseen_ngram_rate", "probability"])
@pytest.mark.parametrize("value", ["", "0.5", [], True])
def test_drift_names_a_rate_that_is_not_a_number(name: str, value: object, tmp_path: Path) -> None:
    invalid = _write_sample(tmp_path / "now", **{name: value})
    valid = _write_sample(tmp_path / "then", **{name: 0.5})
    with pytest.raises(DataError, match=rf"sample-1\.jsonl: row 1: {name} is not a number"):
        drift(invalid, against=valid)


def test_drift_reads_samples_without_rates(tmp_path: Path) -> None:
    now, then = _write_sample(tmp_path / "now"), _write_sample(tmp_path / "then", probability=1)
    assert len(list(read_sample(then))) == 1
    assert drift(now, against=then).memes == (1, 1)
