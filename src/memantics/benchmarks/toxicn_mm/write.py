"""Writer of ToxiCN MM's format: harm labels 2.0, all in the test split unless divided."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from memantics.benchmarks import writing
from memantics.benchmarks.toxicn_mm.load import CLASSES
from memantics.core.errors import DataError, InputError
from memantics.core.queue import Review, Reviewed

TYPES = {"targeted": 1, "innuendo": 2, "offence": 3, "dispirited": 4}
MODALITIES = {"fusion": (0, 0), "text": (1, 0), "image": (0, 1), "both": (1, 1)}
# Names of the official code book, in its order, and the answers of the annotation form.
TARGETS = {told["form"]: told["official"] for told in CLASSES["targets"].values()}
_CODES = {name: code for code, name in enumerate(TARGETS, 1)}
_TEST, _TRAIN = "test_data_discription_2.0.json", "train_data_discription_2.0.json"


def write_harms(review: Review) -> writing.Made:
    """Return one row per meme, with label, type, modalities and target."""
    memes = writing.gather_memes(review)
    rows: list[writing.Record] = []
    table: list[writing.Record] = []
    used: dict[str, writing.PublishedMeme] = {}
    skipped: Counter[str] = Counter()
    for reviewed, meme in writing.walk_kept(review, memes):
        if lacking := writing.find_lacking(reviewed, "text", "description", "meaning"):
            skipped[lacking] += 1
            continue
        used[reviewed.item.group] = meme
        rows.append(_row(reviewed, meme))
        fields = ("harmful", "type", "modality", "target")
        labels = {name: str(reviewed.values.get(name) or "") for name in fields}
        table.append({"meme": meme.id, **labels})
    if not rows:
        raise writing.refuse_nothing(review, "ToxiCN MM", skipped)
    counts = Counter(int(str(row["target"])) for row in rows)
    lines = [f"{code},{title},{counts[code]}" for code, title in enumerate(TARGETS.values(), 1)]
    total = sum(counts[code] for code in _CODES.values())
    tail = [f",,{total}", f"Null,Other Harmful Types or Non-harmful,{counts[0]}"]
    book = "\n".join(["ID,Category,Num", *lines, *tail, ""])
    return writing.Made(
        "toxicn_mm",
        ("detection", "type", "target"),
        tuple(used.values()),
        {_TEST: writing.pack(rows), "target_info.csv": book.encode()},
        {"labels": table},
        splits=("test",),
        defaults={"labels": "v2"},
        skipped=skipped,
    )


def split_harms(made: writing.Made, shares: Sequence[int]) -> writing.Made:
    """Write the rows to a train and a test file, stratified by type and cluster-disjoint."""
    rows: list[dict[str, JsonValue]] = json.loads(made.files[_TEST])
    kinds = {str(r["path"]): (f"label {r['label']}", f"type {r['type']}") for r in rows}
    clusters = {meme.id: meme.template_cluster for meme in made.memes}
    strata = {meme.id: kinds[meme.file] for meme in made.memes}
    parts = writing.draw_parts(clusters, strata, shares)
    by_file = {meme.file: parts[meme.id] for meme in made.memes}
    divided: tuple[list[writing.Record], list[writing.Record]] = ([], [])
    for row in rows:
        divided[by_file[str(row["path"])]].append(row)
    if not all(divided):
        raise InputError(
            f"{len(rows)} memes in {len(set(clusters.values()))} template clusters cannot be split",
            hint="collect more memes, or omit --split",
        )
    files = {_TRAIN: writing.pack(divided[0]), _TEST: writing.pack(divided[1])}
    names = ("train", "test")
    labels = [{**row, "split": names[parts[str(row["meme"])]]} for row in made.tables["labels"]]
    return replace(
        made,
        files={**made.files, **files},
        tables={**made.tables, "labels": labels},
        splits=("test", "train", "all"),
    )


def _row(reviewed: Reviewed, meme: writing.PublishedMeme) -> writing.Record:
    harmful = reviewed.values.get("harmful")
    if harmful not in ("yes", "no"):
        raise DataError(reviewed.item.id, "is labelled neither harmful nor harmless")
    bad = harmful == "yes"
    kind = _pick(reviewed, "type", TYPES) if bad else 0
    text, image = MODALITIES[_name(reviewed, "modality", MODALITIES)] if bad else (0, 0)
    return {
        "path": meme.file,
        "text": meme.text,
        "meme_discription": writing.take_text(reviewed, "description", default=""),
        "text_discription": writing.take_text(reviewed, "meaning", default=""),
        "label": int(bad),
        "type": kind,
        "text_modal": text,
        "image_modal": image,
        "target": _pick(reviewed, "target", _CODES) if kind == TYPES["targeted"] else 0,
    }


def _name(
    reviewed: Reviewed, field: str, known: dict[str, tuple[int, int]] | dict[str, int]
) -> str:
    value = reviewed.values.get(field)
    if not isinstance(value, str) or value not in known:
        raise DataError(reviewed.item.id, f"{field} {value!r} is not one of {', '.join(known)}")
    return value


def _pick(reviewed: Reviewed, field: str, known: dict[str, int]) -> int:
    return known[_name(reviewed, field, known)]


WRITER = writing.Writer(write_harms, split=split_harms)
