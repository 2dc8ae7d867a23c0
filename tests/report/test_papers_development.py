"""Both papers on the development parts of their releases: no cell that could be filled is empty.

The parts have no images: any picture does for models that do not look.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.benchmarks.mquest.paper import PAPER
from memantics.benchmarks.registry import SAMPLE_IMAGES
from memantics.core.meaning import DIMENSIONS as NAMES
from memantics.core.queue import (
    AggregatedAnnotation,
    QueueCard,
    QueueItem,
    write_annotations,
    write_queue,
)
from memantics.evaluation.datasets import add_release
from tests.places import SHARED_DATA, needs_shared_data
from tests.report.test_papers_filled import find_empty, redo_memeintent, rename

pytestmark = [pytest.mark.slow, needs_shared_data]
# What a part gives agrees with the paper's value or not by chance: nothing is compared.
SYSTEMS = {name: system.model.partition("/")[2] for name, system in PAPER.systems.items()}
FILLED = {"computed", "arithmetic", "closed", "none"}


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def draw(folder: Path, names: list[str]) -> Path:
    folder.mkdir()
    picture = (SAMPLE_IMAGES / "en-001.png").read_bytes()
    for name in names:
        (folder / name).write_bytes(picture)
    return folder


def ask(model: str, out: Path) -> Path:
    done = mm.evaluate(
        "mquest/qa",
        "fake/keys",
        out=out,
        settings=mm.EvaluationSettings(split="toxmquest350", limit=12),
    )
    return rename(done.folder, f"openai/{model}")


def check(sheet: mm.ReproducedPaper, page: Path) -> Counter[str]:
    """Every cell says what it is; what is closed says why, and the page shows it."""
    text = sheet.save(page).read_text(encoding="utf-8")
    assert find_empty(sheet) == {}
    assert "part of the release" in " ".join(sheet.about)
    for part in sheet.parts:
        assert {cell.status for cell in part.cells} <= FILLED, part.label
        assert all(len(reason) > 20 for reason in part.reasons), part.label
        assert not part.reasons or part.reasons[0].split(".")[0] in text
        assert part.rows or part.texts or part.notes, f"{part.label} shows nothing"
    return Counter(cell.status for part in sheet.parts for cell in part.cells)


def judge_questions(folder: Path) -> Path:
    """A queue over all dimensions, of which every other question was accepted."""
    folder.mkdir()
    draw(folder / "images", ["1.png"])
    items, annotations = [], []
    for place, dimension in enumerate((*NAMES, *NAMES)):
        hidden: dict[str, JsonValue] = {
            "dimension": dimension, "element": "Scene/duel" if dimension == "Toxicity" else None,
            "questions": [],
        }  # fmt: skip
        name, meme, values = f"q{place}", f"m{place}", dict[str, JsonValue]()
        if dimension == "Toxicity":
            values = {"second_question": "yes", "second_answer": "yes"}
        items.append(QueueItem(id=name, group=meme, images=["images/1.png"], hidden=hidden))
        annotations.append(
            AggregatedAnnotation(
                item=name,
                group=meme,
                workflow="validate",
                kept=place < len(NAMES),
                values=values,
                annotations=[],
            )
        )
    write_queue(folder, QueueCard(title="Validation", workflow="validate", warning="Rude."), items)
    write_annotations(folder / "annotations.jsonl", annotations)
    return folder


def test_mquest(tmp_path: Path) -> None:
    names = [own.name.removesuffix("_qa") for own in (SHARED_DATA / "mquest" / "qa").iterdir()]
    images = draw(tmp_path / "images", [f"{name}.png" for name in names])
    add_release("mquest", SHARED_DATA / "mquest", images)
    runs = [ask(model, tmp_path / f"run-{place}") for place, model in enumerate(SYSTEMS.values())]
    sheet = mm.paper("mquest", runs)
    parts = {part.label: part for part in sheet.parts}
    empty = find_empty(sheet)
    assert set(empty) == {"Figure 5"}, "without a review, acceptance is what is left to fill"
    assert all(row.cells[0].value is not None for row in parts["Table 2"].rows)

    sheet = mm.paper("mquest", runs, annotations=judge_questions(tmp_path / "queue"))
    counts = check(sheet, tmp_path / "mquest.html")
    assert counts["computed"] > 100
    assert counts["arithmetic"] >= 13
    parts = {part.label: part for part in sheet.parts}
    table = {row.label: row.cells[3].value for row in parts["Table 1"].rows}
    assert table["Accepted in your review: Extension"] == 1
    assert table["Accepted in your review: ToxM-Quest"] == 1, "a second question about a scene"
    assert parts["Figure 2"].columns == tuple(SYSTEMS), "systems are called as the paper calls them"
    remarks = " ".join(parts["Table 2"].remarks)
    assert "BLIP2-Flan-T5-xl: accuracy 0.1323 is outside the range of its parts" in remarks
    accepted = {row.label: row.cells[0].value for row in parts["Figure 5"].rows}
    assert accepted["Emotion"] == 50.0
    assert accepted["Scene"] == pytest.approx(200 / 4), "the second question counts, too"
    assert len(parts["Figure 3"].texts) == 1 + len(runs)


def test_memeintent(tmp_path: Path) -> None:
    source = SHARED_DATA / "memeintent"
    rows = json.loads((source / "sigdial.json").read_bytes())
    add_release("memeintent", source, draw(tmp_path / "images", [r["img"] for r in rows.values()]))
    done = redo_memeintent(tmp_path, "release")
    sheet, intents = done.sheet, done.intents[:3]
    counts = check(sheet, tmp_path / "memeintent.html")
    parts = {part.label: part for part in sheet.parts}
    lost = [row for row in parts["Table 3"].rows if row.label == "one of the three"]
    assert [cell.paper for row in lost for cell in row.cells] == [0.015, 0.287, 0.899, 0.339]
    assert all(c.value is not None for r in parts["Table 3"].rows if r not in lost for c in r.cells)
    quoted = sum(bool(cell.reason) for row in parts["Table 1"].rows for cell in row.cells)
    assert counts["closed"] == quoted + 4
    assert len(parts["Section 5.1"].rows) == 4, "one for each AutoBK setting"
    assert "correlation over 4 settings" in parts["Section 5.1"].notes[0]
    assert {row.section for row in parts["RQ1 and RQ2"].rows} >= {"background", "shots", "model"}
    *others, remark = sorted(parts["Table 3"].remarks, key=lambda told: "illegible" in told)
    assert remark.endswith("This row is illegible in our copy of the paper.")
    assert others
    assert all("Not compared with the paper" in told for told in others)
    assert not any(cell.status == "reproduced" for cell in parts["Table 3"].cells)
    ratings = mm.score_human_eval(done.humans, intents)
    assert {own.metric for own in ratings.correlations} >= {"rouge_l", "bleu_4", "bertscore_f1"}
    effects = mm.contrast(intents, "background", metrics=["rouge_l"]).effects
    assert len(effects) == 3
