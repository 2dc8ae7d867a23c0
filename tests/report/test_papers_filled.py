"""Both papers with everything that fills them: fake models, tiny trained ones, votes, ratings."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.actions.humans import export_humans
from memantics.actions.paper import paper
from memantics.actions.queues import make_error_queue, make_questionnaire
from memantics.actions.study import Encoding, StudyData, StudyPlan, choose_variants, study_detectors
from memantics.core.paper import PaperSheet
from memantics.core.queue import QueueItem, Verdict, Vote, read_queue, write_verdicts
from tests.build.publish.queues import judge, make_queue, pick_memes
from tests.build.publish.test_publish import label
from tests.detector.neural.conftest import Make, encoder, plain_arithmetic
from tests.detector.neural.tiny import QUICK
from tests.metrics.tiny_models import make_encoder, make_judge

__all__ = ["encoder", "plain_arithmetic"]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))


def rename(run: Path, model: str) -> Path:
    """Let a run be another model's: no model of the paper's is at hand."""
    path = run / "run.json"
    facts = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(facts | {"model": model}), encoding="utf-8")
    return run


def rate(queue: Path, values: dict[str, JsonValue], stage: str = "rate") -> Path:
    card, items = read_queue(queue)

    def tell(item: QueueItem) -> Verdict:
        votes = [Vote(person=name, stage=stage, values=values) for name in ("p1", "p2")]
        return Verdict(
            item=item.id, group=item.group, workflow=card.workflow, kept=True, values=values,
            votes=votes,
        )  # fmt: skip

    write_verdicts(queue / "verdicts.jsonl", [tell(item) for item in items])
    return queue


def find_empty(sheet: PaperSheet) -> dict[str, set[str]]:
    """Empty cells by part: the rows that they stand in."""
    return {
        part.label: rows
        for part in sheet.parts
        if (rows := {r.label for r in part.rows if any(c.status == "empty" for c in r.cells)})
    }


def test_toxicn_mm_has_no_cell_left_to_fill(encoder: Make, tmp_path: Path) -> None:
    encoding = Encoding(str(encoder("text")), encoder("image"), encoder("resnet"), encoder("clip"))
    training = replace(QUICK, seeds=(0, 1), hold_out="random")
    names = ("paper", "ridge")
    plan = StudyPlan(
        choose_variants(names, encoding), encoding, training, epochs=1, rate=3e-3, length=24
    )
    study_detectors(StudyData("starter"), plan, tmp_path / "study", lambda _: None)
    runs = []
    systems = [("gpt-3.5-turbo", "text"), ("gpt-4-vision-preview", "text")]
    systems += [("gpt-4-vision-preview", "image_text")]
    systems += [(name, "image_text") for name in ("visualglm-6b", "Qwen-VL-Chat", "VisCPM-Chat")]
    for place, (name, shown) in enumerate(systems):
        for task in ("detection", "type"):
            done = mm.evaluate(
                f"toxicn_mm/{task}", model="fake/keys", data="starter",
                options={"input": shown}, out=tmp_path / f"runs-{place}",
            )  # fmt: skip
            assert isinstance(done, mm.Run)
            runs.append(rename(done.folder, f"openai/{name}"))
    memes = pick_memes("zh", 20)
    votes = make_queue(tmp_path / "votes", "label-by-vote", memes)
    judge(votes, "label-by-vote", {meme.id: label(meme) for meme in memes})
    people = rate(
        make_questionnaire(tmp_path / "people", 2).folder,
        {"consent": "yes", "gender": "female", "age": "20_to_30", "region": "asian"},
        "ask",
    )
    errors = make_error_queue(runs[:1], tmp_path / "errors").folder
    rate(errors, {"error": "culture"}, "code")
    given = [votes, people, errors]
    sheet = paper("toxicn_mm", runs, data="starter", detectors=tmp_path / "study", verdicts=given)
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet) == {}
    parts = {part.label: part for part in sheet.parts}
    rows = {(row.section, row.label): row for row in parts["Table 5"].rows}
    assert all(
        cell.value is not None for cell in rows["Multimodal", "CLIP + MKE, fine-tuned"].cells
    )
    assert "over 2 seeds" in rows["Text", "RoBERTa, fine-tuned"].cells[0].note
    assert ("Other detectors", "ridge") in rows
    assert [row.label for row in parts["Table 5, tests"].rows][:1] == ["fusion → fusion+text"]
    assert len(parts["Table 6"].texts) == 3
    coded = {row.label: row.cells[0].value for row in parts["Section 5.4"].rows}
    assert coded["Type II: cultural background is missed"] == len(read_queue(errors)[1])
    women = next(row for row in parts["Table 2"].rows if row.label == "female")
    assert women.cells[0].value == 4, "two people filled in two forms each"


def test_memeintent_has_no_cell_left_to_fill(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    models = {
        "bertscore": str(make_encoder(tmp_path / "bert")),
        "nli": str(make_judge(tmp_path / "nli", ("entailment", "contradiction"))),
    }
    runs = []
    for role, name in (("text", "Meta-Llama-3-8B-Instruct"), ("vlm", "llava-v1.6-mistral-7b-hf")):
        for shots in ("zero", "few"):
            chosen = {"role": role, "shots": shots, **models}
            for task, kinds in (("background", ("",)), ("intent", ("none", "auto", "human"))):
                for kind in kinds:
                    done = mm.evaluate(
                        f"memeintent/{task}", model="fake/echo", data="starter",
                        options=chosen | ({"background": kind} if kind else {}), limit=6,
                        out=tmp_path / f"{role}-{shots}-{task}-{kind}",
                    )  # fmt: skip
                    assert isinstance(done, mm.Run)
                    runs.append(rename(done.folder, f"openai/{name}"))
    intents = [run for run in runs if "-intent-" in run.parent.name][:3]
    rated = export_humans(intents, tmp_path / "humans", memes=4)
    rate(rated.queue, {"completeness": 4, "relevance": 5, "correctness": 3})
    memes = pick_memes("en", 4)
    review = make_queue(tmp_path / "review", "collect-and-edit", memes)
    values: dict[str, JsonValue] = {"correctness": [5, 4], "completeness": [4, 4]}
    rate(review, values, "review")
    sheet = paper("memeintent", runs, data="starter", verdicts=[rated.queue, review])
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet) == {}
    parts = {part.label: part for part in sheet.parts}
    assert len(parts["Table 3"].rows) >= 12
    assert parts["RQ1 and RQ2"].rows
    section = {row.label: row.cells[0] for row in parts["Section 3.3"].rows}
    assert section["Correctness of intents, mean"].value == 4.5
    figure = parts["Figure 6"].rows[0].cells
    assert [cell.value for cell in figure] == [4.0, 5.0, 3.0]
