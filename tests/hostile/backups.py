"""Backups of the annotation database that somebody changed."""

from __future__ import annotations

import io
import json
import random
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from tests.hostile.cases import Case

SOUND = Path(__file__).parents[1] / "compat" / "fixtures" / "annotate" / "backup.zip"
VALUES: tuple[Any, ...] = (
    *(None, True, -1, 0, 2**31, 2**63, 2**70, 1e400, 0.5, float("nan")),
    *("", "x" * 5000, "\x00", "\ud800", "../../etc/passwd", "\x1b]0;x\x07", "NaN"),
    *([], [1], {}, {"a": {"b": 1}}, "[]", "{}", "[" * 3000),
)


@cache
def parts() -> dict[str, bytes]:
    with zipfile.ZipFile(SOUND) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def password_hashes() -> list[str]:
    rows = parts()["tables/users.jsonl"].splitlines()
    return [json.loads(row)["password_hash"] for row in rows]


def generate(seed: int, count: int) -> Iterator[Case]:
    """Values of other types, columns and rows added or missing, parts missing, bytes damaged."""
    chance = random.Random(seed)
    tables = sorted(n for n in parts() if n.startswith("tables/") and parts()[n].strip())
    names = sorted(parts())
    for _ in range(count):
        kind = chance.randrange(10)
        table = chance.choice(tables)
        rows = parts()[table].splitlines()
        row = chance.randrange(len(rows))
        if kind < 6:
            column = chance.choice(sorted(json.loads(rows[row])))
            yield {"table": table, "row": row, "column": column, "value": chance.choice(VALUES)}
        elif kind == 6:
            edit = chance.choice(("drop", "repeat", "cut", "column"))
            yield {"table": table, "row": row, "edit": edit}
        elif kind == 7:
            yield {"missing": chance.choice(names)}
        elif kind == 8:
            key = chance.choice(sorted(json.loads(parts()["manifest.json"])))
            yield {"manifest": key, "value": chance.choice(VALUES)}
        else:
            place = round(chance.random(), 4)
            yield {"place": place, "bytes": chance.choice(("00", "ffffffff", "504b0304", ""))}


def build(case: Case) -> bytes:
    """The file that a case describes."""
    made = dict(parts())
    if "table" in case:
        made[case["table"]] = _edit(made[case["table"]], case)
    elif "manifest" in case:
        manifest = json.loads(made["manifest.json"]) | {case["manifest"]: case["value"]}
        made["manifest.json"] = json.dumps(manifest).encode()
    elif "missing" in case:
        del made[case["missing"]]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in made.items():
            archive.writestr(name, body)
    data = packed.getvalue()
    if "place" in case:
        damage = bytes.fromhex(case["bytes"])
        place = int(case["place"] * len(data))
        data = data[:place] + damage + data[place + len(damage) :] if damage else data[:place]
    return data


def _edit(body: bytes, case: Case) -> bytes:
    lines = body.splitlines()
    row = json.loads(lines[case["row"]])
    if case.get("edit") == "drop":
        del lines[case["row"]]
    elif case.get("edit") == "repeat":
        lines.append(lines[case["row"]])
    elif case.get("edit") == "cut":
        lines[case["row"]] = lines[case["row"]][:-3]
    elif case.get("edit") == "column":
        lines[case["row"]] = json.dumps(row | {"another": 1}).encode()
    else:
        lines[case["row"]] = json.dumps(row | {case["column"]: case["value"]}).encode()
    return b"".join(line + b"\n" for line in lines)
