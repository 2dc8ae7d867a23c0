"""Papers with everything that fills them: fake models, tiny trained ones, votes, ratings."""

from __future__ import annotations

import json
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.benchmarks.mer_bench.paper import PAPER as MER_BENCH
from memantics.benchmarks.paper import PaperRow, PaperSheet
from memantics.benchmarks.punmemecn.paper import PAPER as PUNMEMECN
from memantics.construction.queues import make_error_queue, make_questionnaire
from memantics.core.data import DataKind
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueItem,
    read_queue,
    write_annotations,
)
from memantics.evaluation.human_eval import export_human_eval
from memantics.evaluation.paper import paper
from memantics.moderation.study.running import StudyPlan
from memantics.moderation.study.study import StudyData, study_detectors
from memantics.moderation.study.variants import StudyEncoders, choose_variants
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.construction.publish.test_publish import label
from tests.mer_bench.samples import draw
from tests.metrics.tiny_models import make_encoder, make_judge, make_masked
from tests.moderation.neural.conftest import Make, encoder, plain_arithmetic
from tests.moderation.neural.tiny import QUICK
from tests.places import SHARED_DATA, needs_shared_data
from tests.punmemecn.release import SAMPLE

pytestmark = pytest.mark.slow
SYSTEMS = {
    name: system.model.partition("/")[2]
    for name, system in PUNMEMECN.systems.items()
    if system.model
}
EXPLORED = (
    *("InternVL-2.5-8B", "InternVL-2.5-26B", "InternVL-2.5-38B"),
    *("GPT-4o-mini", "GPT-4o"),
)
# What English runs and 'build check-hard-negatives' fill: tests/punmemecn.
ASIDE = {"Figure 4, English prompts", "Table 7, other ways to ask", "Hard negatives"}
# Tables with rows of systems that only the paper's authors ran.
PRINTED = (
    *("Table 1", "Table 2", "Table 2, released models", "Figure 4", "Table 4"),
    *("Table 5", "Table 5, released", "Table 7"),
)

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

    def tell(item: QueueItem) -> AggregatedAnnotation:
        votes = [
            IndividualAnnotation(annotator=name, stage=stage, values=values)
            for name in ("p1", "p2")
        ]
        return AggregatedAnnotation(
            item=item.id, group=item.group, workflow=card.workflow, kept=True, values=values,
            annotations=votes,
        )  # fmt: skip

    write_annotations(queue / "annotations.jsonl", [tell(item) for item in items])
    return queue


def find_empty(sheet: PaperSheet) -> dict[str, set[str]]:
    """Empty cells by part: the rows that they stand in. Every row has a cell for each column."""
    for part in sheet.parts:
        assert all(len(row.cells) == len(part.columns) for row in part.rows), part.label
    return {
        part.label: rows
        for part in sheet.parts
        if (rows := {r.label for r in part.rows if any(c.status == "empty" for c in r.cells)})
    }


def test_toxicn_mm_has_no_cell_left_to_fill(encoder: Make, tmp_path: Path) -> None:
    encoding = StudyEncoders(
        str(encoder("text")), encoder("image"), encoder("resnet"), encoder("clip")
    )
    training = replace(QUICK, seeds=(0, 1), hold_out="random")
    names = ("paper", "ridge")
    plan = StudyPlan(
        choose_variants(names, encoding), encoding, training, epochs=1, rate=3e-3, length=24
    )
    study_detectors(StudyData("sample"), plan, tmp_path / "study", lambda _: None)
    runs = []
    systems = [("gpt-3.5-turbo", "text"), ("gpt-4-vision-preview", "text")]
    systems += [("gpt-4-vision-preview", "image_text")]
    systems += [(name, "image_text") for name in ("visualglm-6b", "Qwen-VL-Chat", "VisCPM-Chat")]
    for place, (name, shown) in enumerate(systems):
        for task in ("detection", "type"):
            done = mm.evaluate(
                f"toxicn_mm/{task}",
                "fake/keys",
                out=tmp_path / f"runs-{place}",
                settings=mm.EvaluationSettings(data="sample", options={"input": shown}),
            )
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
    sheet = paper("toxicn_mm", runs, data="sample", detectors=tmp_path / "study", annotations=given)
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet) == {}
    parts = {part.label: part for part in sheet.parts}
    rows = {(row.section, row.label): row for row in parts["Table 5"].rows}
    # A type that neither the sample nor the predictions hold has no F1.
    values = [cell.value for cell in rows["Multimodal", "CLIP + MKE, fine-tuned"].cells]
    assert None not in values[:3], values
    assert "over 2 seeds" in rows["Text", "RoBERTa, fine-tuned"].cells[0].note
    assert ("Other detectors", "ridge") in rows
    assert [row.label for row in parts["Table 5, tests"].rows][:1] == ["fusion → fusion+text"]
    assert len(parts["Table 6"].texts) == 3
    coded = {row.label: row.cells[0].value for row in parts["Section 5.4"].rows}
    assert coded["Type II: cultural background is missed"] == len(read_queue(errors)[1])
    women = next(row for row in parts["Table 2"].rows if row.label == "female")
    assert women.cells[0].value == 4, "two people filled in two forms each"


@dataclass(frozen=True)
class Redone:
    """MemeIntent's paper with all that fills it."""

    sheet: mm.ReproducedPaper
    intents: list[Path]
    humans: Path


def redo_memeintent(folder: Path, data: Literal["sample", "release"]) -> Redone:
    """Two systems in all settings, people's ratings of three of them, and a review of intents."""
    pytest.importorskip("transformers")
    models = {
        "bertscore": str(make_encoder(folder / "bert")),
        "nli": str(make_judge(folder / "nli", ("entailment", "contradiction"))),
    }
    runs = []
    for role, name in (("text", "Meta-Llama-3-8B-Instruct"), ("vlm", "llava-v1.6-mistral-7b-hf")):
        for shots in ("zero", "few"):
            chosen = {"role": role, "shots": shots, **models}
            for task, kinds in (("background", ("",)), ("intent", ("none", "auto", "human"))):
                for kind in kinds:
                    done = mm.evaluate(
                        f"memeintent/{task}",
                        "fake/echo",
                        out=folder / f"{role}-{shots}-{task}-{kind}",
                        settings=mm.EvaluationSettings(
                            data=data,
                            options=chosen | ({"background": kind} if kind else {}),
                            limit=6,
                        ),
                    )
                    runs.append(rename(done.folder, f"openai/{name}"))
    intents = [run for run in runs if "-intent-" in run.parent.name]
    rated = export_human_eval(intents[:3], folder / "humans", memes=4)
    rate(rated.queue, {"completeness": 4, "relevance": 5, "correctness": 3})
    review = make_queue(folder / "review", "collect-and-edit", pick_memes("en", 4))
    rate(review, {"correctness": [5, 4], "completeness": [4, 4]}, "review")
    sheet = paper("memeintent", runs, data=data, annotations=[rated.queue, review])
    return Redone(sheet, intents, folder / "humans")


def test_memeintent_has_no_cell_left_to_fill(tmp_path: Path) -> None:
    sheet = redo_memeintent(tmp_path, "sample").sheet
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet) == {}
    parts = {part.label: part for part in sheet.parts}
    assert len(parts["Table 3"].rows) >= 12
    assert parts["RQ1 and RQ2"].rows
    section = {row.label: row.cells[0] for row in parts["Section 3.3"].rows}
    assert section["Correctness of intents, mean"].value == 4.5
    row = parts["Figure 6"].rows[0].cells
    assert [cell.value for cell in row] == [4.0, 5.0, 3.0]


def copy_as(run: Path, model: str, place: Path) -> Path:
    """The same answers under another model's name."""
    made = place / f"{run.parent.name}-{model.rpartition('/')[2]}"
    shutil.copytree(run, made)
    return rename(made, model)


PUN_TASKS: dict[str, dict[str, Sequence[str]]] = {
    "detection": {"prompt": "1234567"},
    "sentiment": {"prompt": "1234567"},
    "chat": {"prompt": "1234567", "level": ("hard",)},
    "ocr": {},
    "pinyin": {},
    "harmful": {},
    "punchline": {},
}


def run_puns(out: Path, **settings: Any) -> list[Path]:
    """Every run that a table of PunMemeCN's asks for, of one fake model."""
    wanted = [
        (task, dict(zip(options, values, strict=True)))
        for task, options in PUN_TASKS.items()
        for values in product(*options.values())
    ]
    wanted += [("chat", {"prompt": number, "level": "easy"}) for number in "12"]
    runs = []
    for place, (task, options) in enumerate(wanted):
        more = settings.get("more", {}).get(task, {})
        done = mm.evaluate(
            f"punmemecn/{task}",
            "fake/keys",
            out=out / f"{place:02}-{task}",
            settings=mm.EvaluationSettings(
                data=settings["data"], options=options | more, limit=settings.get("limit")
            ),
        )
        runs.append(done.folder)
    return runs


def read_prompt(run: Path) -> str:
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    return str(facts["options"].get("prompt", ""))


def tuned(folder: Path, model: str, style: str) -> Path:
    """What ``detector tune`` leaves, as far as a paper reads it: a tuned model takes minutes."""
    folder.mkdir(parents=True)
    facts = {"model": model, "wording": {"question": "pun", "style": style, "language": "zh"}}
    (folder / "tuning.json").write_text(json.dumps(facts), encoding="utf-8")
    said = [("valid", True, True), ("valid", True, None), ("valid", False, False)]
    said += [("external", False, False), ("external", False, True)]
    rows = [
        {"part": part, "id": f"m{n}", "gold": gold, "said": own, "score": None, "reply": ""}
        for n, (part, gold, own) in enumerate(said)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "verdicts.jsonl").write_text(lines, encoding="utf-8")
    return folder


def test_punmemecn_has_no_cell_left_to_fill(tmp_path: Path) -> None:
    pytest.importorskip("transformers")
    own = run_puns(tmp_path / "own", data="sample")
    runs = [*own]
    first = [run for run in own if read_prompt(run) in ("1", "2", "")]
    for name, model in SYSTEMS.items():
        asked = own if name in EXPLORED else first
        runs += [copy_as(run, f"openai/{model}", tmp_path / "named") for run in asked]
    harmful = next(run for run in own if "harmful" in run.parent.name)
    for name in ("CLIP-MKE", "HateCLIPper-RGCL"):
        runs.append(copy_as(harmful, f"detector/{name}", tmp_path / "detectors"))
    folders = [
        tuned(tmp_path / f"{model.rpartition('/')[2]}-{style}", model.rpartition("/")[2], style)
        for model in (SYSTEMS["Qwen2.5-VL-7B"], SYSTEMS["InternVL-2.5-8B"], "org/Other-VL")
        for style in ("image", "caption", "reasons")
    ]
    chats = SAMPLE.root / "_Chat(easy).json"
    for name in ("DuConv.json", "NaturalConv.json", "Mine.json"):
        shutil.copy(chats, tmp_path / name)
    bert = make_masked(tmp_path / "bert")
    measured = mm.measure_chats(
        [chats, *sorted(tmp_path.glob("*.json"))], perplexity=str(bert), bert=bert
    )
    statistics = measured.save(tmp_path / "chats-measured.txt")
    sheet = paper("punmemecn", runs, data="sample", detectors=folders, statistics=statistics)
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet).keys() == ASIDE
    parts = {part.label: part for part in sheet.parts}
    four = {row.label: [cell.value for cell in row.cells] for row in parts["Table 4"].rows}
    assert four["Qwen2.5-VL-7B, fine-tuned: image"] == [0.5, 1.0, 0.5]
    assert four["Other-VL: image and caption, reasons"] == [0.5, 1.0, 0.5]
    assert len(four) == 9
    one = {row.label: row for row in parts["Table 1"].rows}
    assert list(one) == ["DuConv", "NaturalConv", "Our", "Mine"]
    assert one["Mine"].kind == "own"
    assert all(cell.value is not None for row in one.values() for cell in row.cells)
    five = {row.label: row.cells for row in parts["Table 5"].rows}
    assert five["CLIP-MKE, trained"][3].value is not None
    assert five["GPT-4o"][0].reason == "The sample contains no memes of ToxiCN MM."
    explored = {row.label for row in parts["Figure 4"].rows}
    assert explored == {"fake/keys", *EXPLORED}


def test_models_asked_by_two_prompts_stay_out_of_figure_4(tmp_path: Path) -> None:
    runs = []
    for number in ("1", "2"):
        done = mm.evaluate(
            "punmemecn/detection",
            "fake/keys",
            out=tmp_path / number,
            settings=mm.EvaluationSettings(data="sample", options={"prompt": number}, limit=4),
        )
        runs.append(done.folder)
    labels = {row.label for row in find_part(paper("punmemecn", runs, data="sample"), "Figure 4")}
    assert labels == set(EXPLORED)
    named = copy_as(runs[0], "openai/gpt-4o", tmp_path)
    rows = find_part(paper("punmemecn", [*runs, named], data="sample"), "Figure 4")
    assert {row.label for row in rows} == labels, "the paper's models keep their rows"
    filled = {row.label for row in rows if any(cell.value is not None for cell in row.cells)}
    assert filled == {"GPT-4o"}


def find_part(sheet: PaperSheet, label: str) -> tuple[PaperRow, ...]:
    return next(part.rows for part in sheet.parts if part.label == label)


@needs_shared_data
def test_the_released_part_of_punmemecn_leaves_only_published_systems_empty(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Images of the first hundred groups are at hand; the user adds harmful ones."""
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    release = tmp_path / "PunMemeCN"
    shutil.copytree(SHARED_DATA / "punmemecn", release)
    for folder in ("harmful_pun", "harmful_nonpun", "harmful_toxicn"):
        (release / folder).mkdir()
        shutil.copy(release / "images" / "CN00001.png", release / folder)
    shell.done("data", "add", "punmemecn", release)
    present = {"images": "present"}
    more = dict.fromkeys(("detection", "sentiment", "chat", "ocr", "punchline"), present)
    runs = run_puns(tmp_path / "runs", data="release", limit=9, more=more)
    sheet = paper("punmemecn", runs)
    empty = find_empty(sheet)
    parts = {part.label: part for part in sheet.parts}
    published = {
        label: {row.label for row in parts[label].rows if row.kind == "paper"} for label in PRINTED
    }
    left = {label: rows - published.get(label, set()) for label, rows in empty.items()}
    assert {label for label, rows in left.items() if rows} == ASIDE, left
    own = {row.label: row.cells for row in parts["Table 5"].rows if row.kind == "own"}
    assert [cell.status for cell in own["fake/keys"]] == ["computed"] * 5


JUDGED = {"view": ("all", "model", "category", "overall")}


def judge_edits(out: Path, data: DataKind) -> list[Path]:
    """All views by one judge, and the four configurations on the same edits."""
    wanted: list[dict[str, str]] = [{"view": view} for view in JUDGED["view"]]
    wanted += [
        {"rationale": a, "placement": b} for a, b in (("RF", "VL"), ("RL", "VF"), ("RL", "VL"))
    ]
    runs = []
    for place, options in enumerate(wanted):
        done = mm.evaluate(
            "mer_bench/judge",
            "baseline/random",
            out=out / str(place),
            settings=mm.EvaluationSettings(data=data, options=options),
        )
        runs.append(rename(done.folder, "openai/judge"))
    return runs


def rate_edits(runs: list[Path], out: Path) -> Path:
    """Two people on the edits that all configurations judged."""
    every = [run for run in runs if run.parent.name in ("0", "4", "5", "6")]
    queue = export_human_eval(every, out, memes=8).queue
    return rate(
        queue,
        {"vgq": 4, "vea": 5, "tgq": 3, "tea": 4, "hgq": 4, "pes": 2, "lc": "yes", "label": "calm"},
    )


def test_mer_bench_has_no_cell_left_to_fill(tmp_path: Path) -> None:
    runs = judge_edits(tmp_path / "runs", "sample")
    people = rate_edits(runs, tmp_path / "humans")
    sheet = paper("mer_bench", runs, data="sample", annotations=people)
    sheet.save(tmp_path / "paper.html")
    assert find_empty(sheet).keys() == {"Repeated judgements"}  # tests/mer_bench/test_cases.py
    parts = {part.label: part for part in sheet.parts}
    assert parts["Figure 4"].columns[2:] == tuple(
        f"{name}: distance to people" for name in ("RF-VF", "RF-VL", "RL-VF", "RL-VL")
    )
    assert {row.label for row in parts["Table II"].rows} == {"identity", "recolour"}
    wins = {row.label: row.cells[0].value for row in parts["Figure 4, win rates"].rows}
    assert list(wins) == ["RF-VF", "RF-VL", "RL-VF", "RL-VL"]
    assert sum(value for value in wins.values() if isinstance(value, float)) == pytest.approx(200)
    assert all(cell.value is not None for cell in parts["Figure 4"].rows[0].cells[2:])


@needs_shared_data
def test_the_released_part_of_mer_bench_leaves_only_published_editors_empty(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The part holds an index and no images: small plain ones stand for sources and edits."""
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    data = tmp_path / "MER-Bench" / "data"
    data.mkdir(parents=True)
    rows = json.loads((SHARED_DATA / "mer_bench" / "index_final.json").read_bytes())[:24]
    (data / "index_final.json").write_text(json.dumps(rows), encoding="utf-8")
    for row in rows:
        draw(data / "Original" / row["id"])
        for editor in ("Flux9B", "mine"):
            draw(data / "EditedResults" / editor / row["id"], "green")
    shell.done("data", "add", "mer_bench", tmp_path / "MER-Bench")
    runs = judge_edits(tmp_path / "runs", "release")
    sheet = paper("mer_bench", runs, annotations=rate_edits(runs, tmp_path / "humans"))
    empty = find_empty(sheet)
    assert empty.keys() <= {"Table II", "Repeated judgements"}
    assert empty["Table II"] == set(MER_BENCH.systems) - {"Flux9B"}


def test_a_run_that_was_asked_otherwise_has_a_row_of_its_own(tmp_path: Path) -> None:
    """The paper's row wants memes of its folders: a run on other memes is not lost."""
    told = {"memes": "negative"}
    run = mm.evaluate(
        "punmemecn/harmful",
        "fake/keys",
        out=tmp_path,
        settings=mm.EvaluationSettings(data="sample", options=told),
    )
    sheet = paper("punmemecn", [rename(run.folder, "detector/CLIP-MKE")], data="sample")
    (table,) = [part for part in sheet.parts if part.label == "Table 5"]
    found = {row.label: [cell.value for cell in row.cells] for row in table.rows}
    assert set(found["CLIP-MKE, trained"]) == {None}
    assert found["detector/CLIP-MKE"][3] == 1.0
