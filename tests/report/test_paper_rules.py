"""What may be compared with a paper, rule by rule, and runs that must not be."""

from __future__ import annotations

import csv
import html
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.mer_bench.paper import (
    PAPER,
    _are_theirs,
    list_judge_differences,
    name_editor,
)
from memantics.benchmarks.paper import Cell, PaperMaterial, PaperPart, PaperRow, ScoredDetector
from memantics.benchmarks.paper_file import (
    DeclaredPart,
    DeclaredRow,
    PaperMetric,
    fill_systems,
    list_others,
)
from memantics.benchmarks.protocol import find_decoding, list_differences
from memantics.benchmarks.published import PaperSystem, PublishedRow, read_published
from memantics.benchmarks.published import compare as compare_statistics
from memantics.benchmarks.registry import find_benchmark, find_tasks
from memantics.benchmarks.toxicn_mm.paper_models import _is_theirs as stands_on_their_encoders
from memantics.core.data import Source
from memantics.core.records import Sampling, Score
from memantics.core.rundir import RunFacts, Scores
from memantics.evaluation.paper import ReproducedPaper, describe_cell, find_defaults, paper
from memantics.evaluation.reports.runs import load_runs
from tests.commands import Shell
from tests.places import ROOT

FACTS = RunFacts(
    benchmark="mquest", task="qa", title="", main="accuracy", unit="", model="openai/org/vlm-7b",
    model_note="", identity={}, options={"order": "explain"}, split="all", limit=None, invalid="",
    prompts={"ask": "1"}, data={}, warning="", version="", fingerprint="", started="",
    finished="now", wording="official", decoding={"temperature": 0.0, "max_tokens": None},
)  # fmt: skip


@dataclass(frozen=True)
class Ran:
    facts: RunFacts
    n: int = 307
    folder: Path = Path("run")
    value: float = 0.5
    rescored: Mapping[str, str] = field(default_factory=dict)

    @property
    def results(self) -> Scores:
        scores = (Score("accuracy", self.value, self.n), Score("macro_accuracy", 0.5, 10))
        return Scores("accuracy", {}, scores, rescored=self.rescored)

    @property
    def task(self) -> str:
        return f"{self.facts.benchmark}/{self.facts.task}"

    @property
    def model(self) -> str:
        return self.facts.model


ROW = PublishedRow(
    task="qa", system="VLM 7B", options={"order": "explain"}, split="all",
    metrics={"accuracy": 0.5, "macro_accuracy": 0.5}, digits=4, source="Table 2", feasible=None,
    sizes={"accuracy": 307}, wording="official", decoding={"temperature": 0.0},
)  # fmt: skip
PART = DeclaredPart(
    label="Table 2", caption="", columns=("All", "Macro"),
    metrics=tuple(PaperMetric(task="qa", key=name) for name in ("accuracy", "macro_accuracy")),
    rows=(DeclaredRow(label="VLM 7B", system="VLM 7B"),), fill="memantics run $name",
)  # fmt: skip


def material(*runs: Any, **changes: Any) -> PaperMaterial[None]:
    made: PaperMaterial[None] = PaperMaterial(
        "mquest", Source("release", Path()), None, {}, {}, (ROW,), compared=True, runs=runs,
        systems={"VLM 7B": PaperSystem(model="openai/org/vlm-7b", names=("vlm_seven",))},
        checksum="abc", prompts=lambda _: {"ask": "1"},
        defaults=lambda _: {"invalid": "wrong", "hint": "prompt", "order": "other"},
    )  # fmt: skip
    return replace(made, **changes)


def cells(run: Ran, **changes: Any) -> tuple[Cell, ...]:
    (row,), _ = fill_systems(material(run, **changes), PART)
    return row.cells


def test_the_same_items_are_compared_and_a_metric_of_unknown_n_is_not() -> None:
    accuracy, macro = cells(Ran(FACTS))
    assert accuracy.status == "reproduced"
    assert macro.status == "computed", "the paper does not say over what it is the mean"


@pytest.mark.parametrize("n", [0, 306, 308, 609])
def test_another_number_of_items_is_not_compared(n: int) -> None:
    assert cells(Ran(FACTS, n))[0].status == "computed"


@pytest.mark.parametrize(
    "changed",
    [
        {"limit": 307}, {"sample": 307}, {"perturbation": "blank"},
        {"imported": {"format": "table", "file": "a.csv"}},
    ],
    ids=["limit", "sample", "perturbation", "imported"],
)  # fmt: skip
def test_a_run_that_did_not_ask_all_items_here_is_not_compared(changed: dict[str, Any]) -> None:
    assert cells(Ran(replace(FACTS, **changed)))[0].status == "computed"


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"wording": ""}, "wording: ours instead of the authors' prompts"),
        ({"wording": "own (p)"}, "wording: own (p) instead of the authors' prompts"),
        ({"prompts": {"ask": "2"}}, "prompts: other text than in the registered data (ask)"),
        ({"prompts": {}}, "prompts: other text than in the registered data (ask)"),
        ({"decoding": {"temperature": 1.5}}, "temperature: 1.5 instead of 0"),
        ({"decoding": {"temperature": None}}, "temperature: the server's default instead of 0"),
        ({"decoding": {"temperature": 0.0, "top_p": 0.5}}, "top_p: 0.5 instead of 1"),
        (
            {"decoding": {"temperature": 0.0, "max_tokens": 9}},
            "max_tokens: 9 instead of the server's default",
        ),
        ({"decoding": {}}, "decoding: unknown, since this run does not record it (run it again)"),
        ({"data": {"checksum": "x"}}, "data: the run uses another copy than the registered one"),
        (
            {"decoding": {"temperature": 0.0, "stop": "."}},
            "stop: . instead of the server's default",
        ),
        (
            {"decoding": {"temperature": 0.0, "image_detail": "low"}},
            "image_detail: low instead of the server's default",
        ),
        ({"invalid": "retry:9"}, "invalid: retry:9 instead of wrong"),
        ({"options": {"order": "explain", "hint": "pinyin"}}, "hint: pinyin instead of prompt"),
        ({"limit": 307}, "items: at most 307"),
    ],
)
def test_a_run_that_differs_from_the_protocol_is_not_compared_and_says_how(
    changed: dict[str, Any], differs: str
) -> None:
    made = material(Ran(replace(FACTS, **changed)))
    (row,), _ = fill_systems(made, PART)
    assert (row.cells[0].status, row.cells[0].differs) == ("computed", (differs,))
    assert f"Not compared with the paper (All): {differs}." in PART.show([row]).remarks
    for form in ("md", "csv", "json", "html"):
        told = ReproducedPaper("mquest", "", "", "", (), (PART.show([row]),), sample=False)
        text = html.unescape(told.render(form)).replace("\\_", "_")
        assert differs.split(": ")[1] in text, form


def test_any_other_field_of_a_request_is_a_decoding_parameter() -> None:
    extra = {"stop": ".", "logit_bias": {"1": 5}, "seed": 3, "user": "me"}
    identity: dict[str, Any] = {"settings": {"extra": extra, "image_detail": "low"}}
    found = find_decoding(Sampling(0.0), identity)
    assert {name: value for name, value in found.items() if value} == {
        "stop": ".", "logit_bias": {"1": 5}, "image_detail": "low",
    }  # fmt: skip
    assert find_decoding(Sampling(0.0), {"template": {"enable_thinking": True}})["template"]


def test_a_run_that_was_scored_otherwise_is_not_compared() -> None:
    """``score --set alpha=2`` changes the values, but neither the run nor its number of items."""
    changed = Ran(FACTS, rescored={"hint": "none", "invalid": "retry:2"})
    told = cells(changed)[0].differs
    assert told == ("invalid: retry:2 instead of wrong", "hint: none instead of prompt")


@pytest.mark.slow
def test_every_option_that_a_row_does_not_name_prevents_a_comparison() -> None:
    """In all papers with compared rows: another form or other constants are not the paper's."""
    for name in ("mquest", "mer_bench", "punmemecn"):
        home = find_benchmark(name).home
        for row in read_published(home / "expected" / "published.json"):
            if row.wording != "official":
                continue
            (ref,) = find_tasks([f"{name}/{row.task}"])
            plain = {option.name: option.default for option in ref.card.option}
            options = {**plain, **row.options, **row.protocol, "wording": "official"}
            facts = replace(
                FACTS, task=ref.name, options=options, split=row.split, decoding=row.decoding or {}
            )
            assert find_defaults(facts)["invalid"] == ref.card.invalid
            for option in ref.card.option:
                if option.name in ("wording", *row.free):
                    continue
                other = replace(facts, options={**options, option.name: "another"})
                told = list_differences(other, row, defaults=find_defaults(facts))
                assert any(text.startswith(f"{option.name}: another") for text in told), option.name


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({"wording": "unstated"}, "unknown in the paper, which does not state its prompts"),
        ({"wording": "printed"}, "the paper prints other prompts"),
        ({"wording": "ours"}, "wording: the authors' prompts instead of ours"),
        ({"decoding": None}, "decoding: unknown in the paper, which does not state it"),
        ({"protocol": {"order": "letter"}}, "order: explain instead of letter"),
    ],
)
def test_what_a_paper_does_not_state_is_unknown(changed: dict[str, Any], differs: str) -> None:
    row = ROW.model_copy(update=changed)
    cell = cells(Ran(FACTS), published=(row,))[0]
    assert cell.status == "computed"
    assert differs in "; ".join(cell.differs)


def test_prompts_that_cannot_be_found_prevent_a_comparison() -> None:
    cell = cells(Ran(FACTS), prompts=lambda _: "the clone lacks its script")[0]
    assert cell.differs == ("prompts: unknown, since the clone lacks its script",)
    assert cells(Ran(FACTS), prompts=None)[0].status == "computed"


def test_the_run_nearest_to_the_paper_fills_its_row_and_the_other_has_a_row() -> None:
    ours = Ran(replace(FACTS, wording=""), folder=Path("ours"), value=0.25)
    theirs = Ran(FACTS, folder=Path("theirs"))
    made = material(ours, theirs)
    (row,), taken = fill_systems(made, PART)
    assert (row.cells[0].status, row.cells[0].runs) == ("reproduced", ("theirs",))
    (other,) = list_others(made, PART, taken)
    assert (other.cells[0].value, other.cells[0].runs) == (25.0, ("ours",))
    assert "ours" in other.label


def test_released_values_have_a_column_and_paper_values_say_whose_they_are() -> None:
    """In all five formats, a released value is never in the paper's column, and none is bare."""
    released = Cell(released=0.462, fill="memantics run x", digits=3)
    computed = Cell(0.731, 0.25, digits=3, compared=False)
    rows = (
        PaperRow("model", (released, computed)),
        PaperRow("quoted", (Cell(0.918, reason="quoted", digits=3),) * 2),
    )
    part = PaperPart("Figure 4", "", ("F1", "TPR"), rows)
    told = ReproducedPaper("punmemecn", "", "", "", (), (part,), sample=False)
    for form in ("md", "latex", "html"):
        text = told.render(form)
        assert "F1, released" in text, form
        assert "TPR, released" not in text, form
        assert "0.462" in text, form
    (line,) = (row for row in csv.DictReader(io.StringIO(told.render("csv"))) if row["released"])
    assert (line["paper"], line["released"], line["value"]) == ("", "0.462", "")
    plain = json.loads(told.render("json"))["parts"][0]["rows"][0]["cells"][0]
    assert (plain["paper"], plain["released"]) == (None, 0.462)
    page = re.sub("</?bdi>", "", told.render("html"))
    assert page.count("paper 0.918") == 2
    assert page.count("0.918") == 2, "a printed value stands bare among computed ones"
    assert "released 0.462" in page


@pytest.mark.parametrize(
    ("name", "label"),
    [
        *(("memeintent", "Figure 4"), ("memeintent", "Figure 5")),
        *(("toxicn_mm", "Table B10"), ("toxicn_mm", "Table B11")),
    ],
)
def test_our_prompts_are_called_ours(name: str, label: str) -> None:
    (part,) = paper(name, data="sample", parts=[label]).parts
    assert part.caption.startswith("Our ")
    assert any("These are our prompts" in note and "not the paper's" in note for note in part.notes)
    page = (ROOT / "docs" / "benchmarks" / "toxicn_mm.md").read_text(encoding="utf-8")
    (row,) = (line for line in page.splitlines() if line.startswith("| Tables B10, B11 |"))
    assert "our prompts" in row


def test_a_value_printed_truncated_agrees_and_says_so() -> None:
    cut = Cell(14.65, 100 * 45 / 307, digits=2)
    assert (cut.status, cut.digit_match) == ("reproduced", "truncated")
    assert describe_cell(cut).endswith("paper 14.65, reproduced, truncated in the paper")
    assert Cell(14.66, 100 * 45 / 307, digits=2).digit_match == "rounded"
    assert Cell(14.64, 100 * 45 / 307, digits=2).status == "differs"
    assert Cell(-0.112, -0.1129, digits=3).digit_match == "truncated"
    assert Cell(0.0, -0.4, digits=0).digit_match == "rounded"


@pytest.mark.parametrize(
    "changed", [{"compared": False}, {"complete": False}], ids=["other data", "a part"]
)
def test_other_data_are_not_compared(changed: dict[str, Any]) -> None:
    cell = cells(Ran(FACTS), **changed)[0]
    assert (cell.value, cell.status) == (50.0, "computed")


@pytest.mark.parametrize(
    "changed", [{"options": {"order": "letter"}}, {"split": "test"}], ids=["options", "split"]
)
def test_a_run_that_was_asked_otherwise_fills_no_row_of_the_paper(changed: dict[str, Any]) -> None:
    assert cells(Ran(replace(FACTS, **changed)))[0].status == "empty"


def test_on_other_data_any_split_fills_the_row_and_is_not_compared() -> None:
    cell = cells(Ran(replace(FACTS, split="test")), complete=False)[0]
    assert (cell.value, cell.status) == (50.0, "computed")


def test_a_cell_of_imported_answers_says_so_and_is_never_reproduced() -> None:
    """By its own status, too, whoever made the cell."""
    facts = replace(FACTS, imported={"format": "table", "file": "rates.csv"})
    accuracy = cells(Ran(facts))[0]
    assert accuracy.origin == "imported from rates.csv"
    assert describe_cell(accuracy).endswith("paper 50.00, computed, imported answers")
    assert replace(accuracy, compared=True).status == "computed"
    other = Ran(replace(facts, model="openai/mine"))
    (row,) = list_others(material(other), PART, set())
    assert {cell.origin for cell in row.cells} == {"imported from rates.csv"}


def test_a_system_is_known_by_every_name_of_its_table() -> None:
    for model in ("openai/org/vlm-7b", "local/folder/VLM_Seven", "openai/vlm-7B"):
        assert cells(Ran(replace(FACTS, model=model)))[0].status == "reproduced", model
    assert cells(Ran(replace(FACTS, model="openai/vlm-8b")))[0].status == "empty"


@pytest.mark.slow
def test_imported_answers_are_named_by_every_table(shell: Shell) -> None:
    file = ROOT / "examples" / "answers" / "full_results.csv"
    words = ("import-answers", file, "--task", "mquest/qa", "--model", "pilot", "--limit", "8")
    told = "imported from full_results.csv"
    ran = shell.run(*words, "--data", "sample", COLUMNS="200")
    assert told in " ".join(ran.out.split())
    (mine,) = [path.parent for path in (shell.folder / "runs").glob("*/run.json")]
    asked = ("run", "mquest/qa", "-m", "baseline/longest", "--limit", "8", "--data", "sample")
    other = shell.run(*asked, "--json")
    second = str(json.loads(other.out)[0]["folder"])
    assert told in " ".join(shell.run("compare", mine, second, COLUMNS="200").out.split())
    assert told in " ".join(shell.run("score", mine, COLUMNS="200").out.split())
    assert load_runs([mine])[0].to_dict()["origin"] == told
    page = shell.run("paper", "mquest", mine, "--data", "sample", "--format", "md").out
    assert "imported answers" in page
    assert f"Answers {told.replace('_', chr(92) + '_')}; no model was run here." in page


def judge_run(folder: Path, editors: list[str], kept: str, **changes: Any) -> Any:
    folder.mkdir()
    lines = [
        {"item": {"id": f"{e}/1", "group": "1", "gold": 1, "form": {"question": "", "fields": []},
                  "tags": {"editor": e, "kept": kept}}}
        for e in editors
    ]  # fmt: skip
    (folder / "items.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = {
        "view": "category", "rationale": "RF", "placement": "VF", "references": "on",
        "checks": "schema", "after_retries": "drop", "layout": "off",
    } | changes.pop("options", {})  # fmt: skip
    facts = replace(
        FACTS, benchmark="mer_bench", task="judge", model="openai/gemini-3-pro-preview",
        options=options, decoding={"temperature": 0.0, "max_tokens": 900},
    )  # fmt: skip
    return Ran(replace(facts, **changes), folder=folder)


def judge_material(run: Any, **changes: Any) -> PaperMaterial[Any]:
    home = find_benchmark("mer_bench")
    made: PaperMaterial[Any] = PaperMaterial(
        "mer_bench", Source("release", Path()), None, {row.key: row for row in home.expect()}, {},
        read_published(home.home / "expected" / "published.json"), compared=True, runs=(run,),
        systems=PAPER.systems, prompts=lambda _: {"ask": "1"},
    )  # fmt: skip
    return replace(made, **changes)


@pytest.mark.parametrize(
    ("changed", "differs"),
    [
        ({}, ""),
        ({"model": "baseline/random"}, "judge: baseline/random instead of gemini-3-pro-preview"),
        ({"limit": 9}, "items: at most 9"),
        ({"options": {"rationale": "RL"}}, "rationale: RL instead of RF"),
        ({"options": {"checks": "all"}}, "checks: all instead of schema"),
        ({"wording": ""}, "wording: ours instead of the authors' prompts"),
        ({"editors": ["Flux9B", "mine"]}, "editors: 1 of the paper's 14 and 1 other, and the"),
        ({"editors": [*PAPER.systems, "mine"]}, "editors: 14 of the paper's 14 and 1 other"),
        ({"editors": list(PAPER.systems)[1:]}, "editors: 13 of the paper's 14, and the value"),
        ({"kept": "16/24"}, "memes: 16 kept instead of 2,711"),
    ],
)
def test_mer_bench_compares_its_judge_editors_and_memes_alone(
    changed: dict[str, Any], differs: str, tmp_path: Path
) -> None:
    editors = changed.pop("editors", list(PAPER.systems))
    run = judge_run(tmp_path / "run", editors, changed.pop("kept", "2711/3117"), **changed)
    made = judge_material(run)
    found = list_judge_differences(made, run, "Table III")
    assert "; ".join(found).startswith(differs) if differs else not found
    assert len(found) <= 1
    assert list_judge_differences(replace(made, complete=False), run, "Table III")
    assert _are_theirs(made, editors) is (sorted(editors) == sorted(PAPER.systems))


@pytest.mark.parametrize(
    ("editors", "kept", "compared"),
    [
        (list(PAPER.systems)[:3], "2900/3117", True),
        (["Flux9B", "mine"], "2711/3117", True),
        (["Flux9B"], "16/24", False),
    ],
)
def test_a_row_per_editor_is_compared_with_the_editors_that_are_there(
    editors: list[str], kept: str, compared: bool, tmp_path: Path
) -> None:
    run = judge_run(tmp_path / "run", editors, kept, options={"view": "model"})
    assert (not list_judge_differences(judge_material(run), run, "Table II")) is compared


def test_an_abbreviated_folder_is_known_if_only_one_editor_begins_so() -> None:
    made = judge_material(None)
    names = {folder: name_editor(made, folder) for folder in (
        "In-Co…", "In-Co...", "FLUX.2-klein-9B", "FLUX…", "In-Co", "mine…", "Step1X-E…",
    )}  # fmt: skip
    assert names == {
        "In-Co…": "ICEdit", "In-Co...": "ICEdit", "FLUX.2-klein-9B": "Flux9B", "FLUX…": "",
        "In-Co": "", "mine…": "", "Step1X-E…": "Step1X",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("settings", "theirs"),
    [
        ({"text": "models/chinese-roberta-wwm-ext-base", "image": "", "clip": ""}, True),
        ({"text": "tiny", "image": "", "clip": ""}, False),
        ({"text": "", "image": "", "clip": ""}, False),
        ({"text": "chinese-roberta-wwm-ext-base", "image": "tiny"}, False),
    ],
)
def test_a_study_of_other_encoders_is_not_compared(settings: dict[str, Any], theirs: bool) -> None:
    row = DeclaredRow(label="", system="RoBERTa, fine-tuned", key="roberta")
    systems = find_benchmark("toxicn_mm").paper.systems
    detector = ScoredDetector("roberta", Path(), {"settings": settings}, {})
    made: Any = material(systems=systems)
    assert stands_on_their_encoders(made, row, detector) is theirs
    assert not stands_on_their_encoders(made, row, None)


def test_models_of_ones_own_choice_measure_no_perplexity_of_the_papers(tmp_path: Path) -> None:
    metrics = tmp_path / "chats.json"
    metrics.write_text('{"chats.perplexity": 4.577, "chats.bertscore": 0.868}')
    (part,) = paper("punmemecn", data="sample", statistics=metrics, parts=["Table 1"]).parts
    ours = next(row for row in part.rows if row.label == "Our")
    assert [cell.status for cell in ours.cells] == ["computed"] * 4


def rows_of(name: str, label: str) -> dict[str, tuple[Cell, ...]]:
    part, *_ = paper(name, data="sample", parts=[label]).parts
    return {row.label: row.cells for row in part.rows}


def test_what_the_paper_prints_stands_as_printed() -> None:
    drops = {
        label: (cells[2].paper, cells[4].paper)
        for label, cells in rows_of("punmemecn", "Table 5").items()
    }
    assert drops["GPT-4o"] == (0.112, 0.402), "0.122 by the cells beside it"
    for label in ("Table 3", "Table 6"):
        statuses = {cell.status for cells in rows_of("punmemecn", label).values() for cell in cells}
        assert statuses == {"closed"}, "what the paper says of its set-up is not computed"


def test_metrics_of_the_text_follow_from_the_tables_or_are_flagged() -> None:
    told = rows_of("toxicn_mm", "Values in the text")
    shown = {
        label: (cell.paper, cell.value, cell.status, cell.agrees) for label, (cell,) in told.items()
    }
    assert shown["MKE over its backbones, macro-F1 of detection"] == (
        0.73,
        0.73,
        "arithmetic",
        True,
    )
    assert shown["MKE over its backbones, macro-F1 of types"] == (3.22, 3.22, "arithmetic", True)
    assert shown["RoBERTa over ResNet and ViT, macro-F1 of detection"] == (
        8.4,
        8.59,
        "arithmetic",
        False,
    )
    assert shown["Annotators' accuracy in the last round of training"][2] == "closed"
    (group,) = rows_of("mquest", "Values in the text")["Highest group accuracy, %"]
    assert (group.paper, group.value, group.status, group.agrees) == (
        91.42,
        83.25,
        "arithmetic",
        False,
    )


def test_a_contradiction_within_a_paper_is_no_difference_of_the_data() -> None:
    """PunMemeCN prints -0.112 beside cells that give -0.122: ``data stats`` said "differs"."""
    rows = [row for row in find_benchmark("punmemecn").expect() if "drop.gpt_4o" in row.key]
    (found,) = compare_statistics(tuple(rows), {rows[0].key: -0.122})
    assert (found.paper, found.value) == (-0.112, -0.122)
    assert found.verdict == "computed from the paper"
    assert "contradicts itself" in found.note


def test_all_of_a_whole_is_never_reproduced() -> None:
    home = find_benchmark("toxicn_mm")
    assert rows_of("toxicn_mm", "Table B7")["Total"][1].compared is False
    stated = {row.key: row for row in find_benchmark("mquest").expect()}
    assert stated["grounded.percent"].paper is None, "the paper prints no such figure"
    assert "fitted" in stated["arithmetic.toxicity_accuracy.1"].note
    assert "21" in {row.key: row for row in home.expect()}["tableB7.age"].note


def test_names_of_releases_and_hubs_are_one_table() -> None:
    """The authors' folders are named as the hub names their models, not as Table II does."""
    made: Any = material(systems=PAPER.systems)
    found = ("FLUX.2-klein-9B", "Z-Image-Turbo", "flux9b", "Qwen-Image-Edit", "mine")
    assert [made.name_system(name) for name in found] == [
        *("Flux9B", "ZTurbo", "Flux9B", "QwenEdit", ""),
    ]
    for name in sorted((ROOT / "src" / "memantics" / "benchmarks").glob("*/paper.toml")):
        systems = find_benchmark(name.parent.name).paper.systems
        known: Any = material(systems=systems)
        for system in systems:
            assert known.name_system(system) == system, "no name stands for two systems"


def test_repeats_are_one_row_with_their_mean_and_deviation() -> None:
    """Five answers of one model are one row, of the paper's or of one's own, not five."""
    first = replace(FACTS, fingerprint="f0")
    runs = [
        Ran(replace(first, fingerprint=f"f{n}", repeat=n, repeat_of="f0" if n else ""),
            folder=Path(f"run{n}"), value=0.4 + 0.1 * n)
        for n in range(3)
    ]  # fmt: skip
    made = material(*runs)
    (row,), taken = fill_systems(made, PART)
    accuracy = row.cells[0]
    assert accuracy.value == pytest.approx(50)
    assert accuracy.sd == pytest.approx(10)
    assert accuracy.note == "mean of 3 runs"
    assert taken == {run.folder for run in runs}
    assert list(list_others(made, PART, taken)) == []
    own = [replace(run, facts=replace(run.facts, model="openai/mine")) for run in runs]
    (other,) = list_others(material(*own), PART, set())
    assert other.label == "openai/mine"
    assert other.cells[0].sd == pytest.approx(10)
    alone = [replace(run, facts=replace(run.facts, repeat_of="")) for run in own]
    assert len(list(list_others(material(*alone), PART, set()))) == 3, "no repeats of one another"
