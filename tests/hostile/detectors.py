"""Detector files that somebody changed, with checksums that fit again."""

from __future__ import annotations

import hashlib
import io
import json
import random
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.hostile.cases import Case

SOUND = Path(__file__).parents[1] / "compat" / "fixtures" / "fast.zip"
EDITS = ("nan", "inf", "-inf", "huge", "zeros", "empty", "shorter", "longer", "flat", "deeper")
KINDS = ("int8", "float16", "complex64", "bool", "U3")
VALUES: tuple[Any, ...] = (
    *(float("nan"), float("inf"), -float("inf"), 1e308, -1, 0, 2, 10**30, True, None),
    *("", "x", "nan", "\x1b]0;x\x07", [], [1], {}, {"a": 1}),
)


@cache
def parts() -> dict[str, bytes]:
    with zipfile.ZipFile(SOUND) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


def generate(seed: int, count: int) -> Iterator[Case]:
    """One to three changes each: of numbers, of shapes, of kinds, of settings, of bytes."""
    chance = random.Random(seed)
    arrays = sorted(name for name in parts() if name.endswith(".npy"))
    settings = sorted(json.loads(parts()["model.json"]))
    for _ in range(count):
        changes = []
        for _ in range(chance.choice((1, 1, 1, 2, 3))):
            kind = chance.randrange(5)
            if kind <= 1:
                edit, place = chance.choice(EDITS), round(chance.random(), 3)
                changes.append({"array": chance.choice(arrays), "edit": edit, "place": place})
            elif kind == 2:
                changes.append({"array": chance.choice(arrays), "kind": chance.choice(KINDS)})
            elif kind == 3:
                value = chance.choice(VALUES)
                changes.append({"setting": chance.choice(settings), "value": value})
            else:
                name = chance.choice(("pieces.json", "card.json"))
                value = chance.choice((*VALUES, [[]], [["a"]], [["a"] * 3] * 5))
                changes.append({"part": name, "value": value})
        yield {"changes": changes}


def build(case: Case) -> bytes:
    """The file that a case describes."""
    made = dict(parts())
    manifest = json.loads(made.pop("model.json"))
    for change in case["changes"]:
        if "array" in change:
            made[change["array"]] = _edit(made[change["array"]], change)
        elif "part" in change:
            made[change["part"]] = json.dumps(change["value"]).encode()
    manifest["parts"] = {name: hashlib.sha256(body).hexdigest() for name, body in made.items()}
    for change in case["changes"]:
        if "setting" in change:
            manifest[change["setting"]] = change["value"]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, body in {"model.json": json.dumps(manifest).encode(), **made}.items():
            archive.writestr(name, body)
    return packed.getvalue()


def _edit(body: bytes, change: Case) -> bytes:
    array = np.load(io.BytesIO(body), allow_pickle=False)
    if "kind" in change:
        with np.errstate(all="ignore"):
            array = array.astype(change["kind"])
    elif change["edit"] in ("nan", "inf", "-inf", "huge"):
        array = array.astype(np.result_type(array, np.float32)).copy()
        value = 3e38 if change["edit"] == "huge" else float(change["edit"])
        array.reshape(-1)[int(change["place"] * max(0, array.size - 1)) :: 1][:1] = value
    elif change["edit"] == "zeros":
        array = np.zeros_like(array)
    elif change["edit"] == "empty":
        array = array[:0]
    elif change["edit"] == "shorter":
        array = array[:-1]
    elif change["edit"] == "longer":
        array = np.concatenate([array, array[-1:]])
    else:
        array = array.reshape(-1) if change["edit"] == "flat" else array[..., None]
    file = io.BytesIO()
    np.save(file, array, allow_pickle=False)
    return file.getvalue()
