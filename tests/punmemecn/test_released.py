"""Results that the authors released stand beside ours, and are compared with nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.paper import Cell, PaperPart
from memantics.benchmarks.punmemecn.load import open_release
from memantics.benchmarks.punmemecn.official import read_released
from memantics.benchmarks.registry import SAMPLE_IMAGES, find_benchmark
from memantics.core.data import Source
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.places import SHARED_DATA, needs_shared_data

OFFICIAL = SHARED_DATA / "punmemecn" / "official"
PROMPT_3 = {"only_image(few_shot)": {"TPR": 0.4, "TNR": 0.8, "F1": 0.462, "new": 1}}
DETECTION: dict[str, Any] = {
    "gpt-4o-mini-2024-07-18": {"cn": PROMPT_3, "en": {"another way": {"F1": 1}}, "fr": PROMPT_3},
    "odd": [],
}
OCR = {"gpt-4o-2024-08-06": {"en": {"zero-shot": {"Acc": 0.883}, "one-shot": {"Acc": None}}}}
CHAT = {"hard": {"intern-vl2_5-8b": {"en": {"only_image(zero_shot)": {"Acc": 0.309}}}}}


def make_clone(root: Path) -> Path:
    """A clone as the authors lay theirs out, with a few results."""
    data = root / "data" / "pun_meme" / "cn"
    shutil.copytree(find_benchmark("punmemecn").folder / "sample", data)
    for name, results in (
        ("pun_meme_eval/pun_meme_detection_metrics.json", DETECTION),
        ("pun_meme_eval/text_driven_meme_response_metrics.json", CHAT),
        ("other_eval/image_OCR_metrics.json", OCR),
    ):
        path = root / "results" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(results), encoding="utf-8")
    return root


def find_cell(part: PaperPart, section: str, label: str, column: str) -> Cell:
    (row,) = (row for row in part.rows if (row.section, row.label) == (section, label))
    return row.cells[part.columns.index(column)]


def test_what_is_not_known_is_passed_over(tmp_path: Path) -> None:
    rows = read_released(open_release(Source("release", make_clone(tmp_path / "clone"))))
    assert [(row.task, row.system, row.options, row.metrics) for row in rows] == [
        (
            "detection",
            "gpt-4o-mini-2024-07-18",
            {"language": "zh", "prompt": "3"},
            {"tpr": 0.4, "tnr": 0.8, "f1": 0.462},
        ),
        (
            "chat",
            "intern-vl2_5-8b",
            {"language": "en", "prompt": "1", "level": "hard"},
            {"accuracy": 0.309},
        ),
        ("ocr", "gpt-4o-2024-08-06", {"language": "en", "example": "none"}, {"substring": 0.883}),
    ]


def test_released_metrics_stand_beside_ours(
    tmp_path: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    clone = make_clone(tmp_path / "clone")
    shell.done("data", "add", "punmemecn", clone, "--images", SAMPLE_IMAGES)
    out = shell.folder / "runs"
    words = ("-m", "fake/keys", "--set", "language=en", "--limit", "3", "--out", out)
    shell.done("run", "punmemecn/detection", *words)
    (run,) = out.iterdir()
    parts = {part.label: part for part in paper("punmemecn", [run], data="release").parts}
    cell = find_cell(parts["Figure 4"], "detection, f1", "GPT-4o-mini", "Prompt 3")
    assert (cell.paper, cell.released, cell.status) == (None, 0.462, "empty")
    english = parts["Figure 4, English prompts"]
    cell = find_cell(english, "chat, accuracy", "InternVL-2.5-8B", "Prompt 1")
    assert cell.released == 0.309
    assert "--set prompt=1 --set language=en --set level=hard" in cell.fill
    ours = find_cell(english, "detection, f1", "fake/keys", "Prompt 1")
    assert (ours.status, ours.released) == ("computed", None)
    assert not any(row.label == "fake/keys" for row in parts["Figure 4"].rows)
    ways = parts["Table 7, other ways to ask"]
    assert find_cell(ways, "", "GPT-4o", "OCR, English").released == 0.883
    assert find_cell(ways, "", "GPT-4o", "OCR, one example").status == "closed"


def test_without_results_a_command_asks_in_english() -> None:
    parts = {part.label: part for part in paper("punmemecn", data="sample").parts}
    for label, tasks in (
        ("Figure 4, English prompts", ("detection", "sentiment", "chat")),
        ("Table 7, other ways to ask", ("ocr", "pinyin")),
    ):
        named = " ".join(f"punmemecn/{task}" for task in tasks)
        command = f"memantics run {named} --model MODEL --set language=en"
        assert parts[label].commands == (command,)


@needs_shared_data
def test_all_released_results_are_read(tmp_path: Path) -> None:
    root = make_clone(tmp_path / "clone")
    shutil.rmtree(root / "results")
    shutil.copytree(OFFICIAL / "results", root / "results")
    rows = read_released(open_release(Source("release", root)))
    seven = {row.system for row in rows if row.task == "detection" and row.options["prompt"] == "7"}
    assert seven == {
        *("intern-vl2_5-8b", "intern-vl2_5-26b", "intern-vl2_5-38b"),
        *("gpt-4o-2024-08-06", "gpt-4o-mini-2024-07-18"),
    }
    one = [row for row in rows if row.options.get("example") == "one" and row.task == "pinyin"]
    assert len(one) == 31
