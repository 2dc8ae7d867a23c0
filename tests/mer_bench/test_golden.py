"""Figures, draws and views digit by digit, as they were before the gate's default changed.

``golden.jsonl`` was written by this module at commit 03ccfa8, a line for the draws of each view and
for each figure of each case: value, interval and n, whole and by part. ``python -m
tests.mer_bench.test_golden`` writes it anew.
"""

from __future__ import annotations

import hashlib
import json
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.mer_bench.views import KeptMemes, View, draw_pairs
from memantics.core.data import Source
from memantics.core.records import Item, Outcome, Score
from memantics.core.task import Task, Unparsed
from tests.mer_bench.samples import opened, reply, write_release
from tests.mer_bench.test_judge import task_on
from tests.tolerances import list_differences

GOLDEN = Path(__file__).with_name("golden.jsonl")
VIEWS: tuple[View, ...] = ("all", "model", "category", "overall")
LABELS = ("angry", "sad", "tense", "bored", "calm", "happy", "excited", "relaxed")

DEFAULT = {"ppe": 0.696154, "rfs": 0.111562, "rfs_run": 0.448635}
DROPPED = 0.137986


def made_up(item: Item) -> str:
    """A judgement that depends on the item alone; one in four misses the target."""
    chance = random.Random(item.id)
    target = item.form.context["target_emotion"]
    label = target if chance.random() < 0.65 else chance.choice(LABELS)
    body = reply(label)
    for own in body.values():
        for key in own:
            if key.endswith("_1_5"):
                own[key] = chance.randint(1, 5)
    body["layout_consistency"]["consistent"] = chance.random() < 0.8
    return json.dumps(body)


def outcomes(task: Task, *, drop: bool) -> list[Outcome]:
    found = []
    for item in task.items():
        try:
            found.append(Outcome(item, "answered", task.parse(made_up(item), item.form)))
        except Unparsed as error:
            if not drop:
                found.append(Outcome(item, "unparsed", error.worth, 6))
    return found


def flat(scores: tuple[Score, ...]) -> dict[str, list[Any]]:
    return {
        f"{s.key}|{s.by}|{s.label}": [
            *(None if v is None else float(f"{v:.12g}") for v in (s.value, s.low, s.high)),
            s.n,
        ]
        for s in scores
    }


def digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()


def draws(source: Source, editors: int) -> dict[str, str]:
    rows = opened(source).rows
    kept = KeptMemes(rows, tuple(f"editor{n:02}" for n in range(editors)), len(rows))
    return {
        view: digest([[p.row.id, p.editor, p.runs] for p in draw_pairs(kept, view, 42)])
        for view in VIEWS
    }


def measure(source: Source) -> dict[str, Any]:
    metrics: dict[str, Any] = {}
    for view in VIEWS:
        for checks in ("schema", "all"):
            task = task_on(source, view=view, checks=checks)
            metrics[f"{view}, {checks}"] = flat(task.score(outcomes(task, drop=True)))
    product = task_on(source, rfs="product", checks="schema")
    metrics["all, schema, product"] = flat(product.score(outcomes(product, drop=True)))
    return {"figures": metrics, "draws": draws(source, 14)}


def write_golden(body: dict[str, Any]) -> None:
    lines = [{"view": view, "draws": own} for view, own in body["draws"].items()]
    for case, rows in body["figures"].items():
        metrics: dict[str, dict[str, Any]] = {}
        for name, row in sorted(rows.items()):
            key, _, part = name.partition("|")
            metrics.setdefault(key, {})[part] = row
        lines += [{"case": case, "figure": key, "by": own} for key, own in metrics.items()]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    GOLDEN.write_text(text, encoding="utf-8")


def read_golden() -> dict[str, Any]:
    draws, metrics = dict[str, str](), dict[str, dict[str, Any]]()
    for line in map(json.loads, GOLDEN.read_text(encoding="utf-8").splitlines()):
        if "view" in line:
            draws[line["view"]] = line["draws"]
        else:
            rows = {f"{line['figure']}|{part}": row for part, row in line["by"].items()}
            metrics.setdefault(line["case"], {}).update(rows)
    return {"figures": metrics, "draws": draws}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Source:
    return write_release(tmp_path_factory.mktemp("golden") / "release", 130, ("one", "two"))


@pytest.fixture(scope="module")
def found(source: Source) -> dict[str, Any]:
    return measure(source)


@pytest.mark.slow
def test_draws_and_views_are_what_they_were(found: dict[str, Any]) -> None:
    assert found["draws"] == read_golden()["draws"]


def test_metrics_are_what_they_were(found: dict[str, Any]) -> None:
    """New rows may stand beside the old ones; no old one may move."""
    known = read_golden()["figures"]
    assert known.keys() == found["figures"].keys()
    for name, rows in known.items():
        now = found["figures"][name]
        assert list_differences({key: now.get(key) for key in rows}, rows) == [], name


def test_the_default_gate_beside_them(source: Source, found: dict[str, Any]) -> None:
    """Misses that break the gate count now: PPE and RFS are those of unchecked replies again."""
    task = task_on(source)
    scores = task.score(outcomes(task, drop=False))
    now = {s.key: round(s.value or 0, 6) for s in scores if not s.by}
    old = {
        checks: {
            key: round(found["figures"][f"all, {checks}"][f"{key}||"][0], 6)
            for key in ("ppe", "tas", "rfs", "rfs_run")
        }
        for checks in ("schema", "all")
    }
    assert now["ppe"] == old["schema"]["ppe"] < old["all"]["ppe"]
    assert now["tas"] == old["schema"]["tas"] < old["all"]["tas"]
    assert {key: now[key] for key in ("ppe", "rfs", "rfs_run")} == DEFAULT
    assert old["all"]["rfs"] == DROPPED


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        body = measure(write_release(Path(folder) / "release", 130, ("one", "two")))
    write_golden(body)
