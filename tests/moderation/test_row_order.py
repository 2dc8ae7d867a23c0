"""No trained file depends on the order of rows, on ids by row number, or on threads."""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.evaluation.datasets import add_release
from memantics.evaluation.own_columns import LabelledColumns
from memantics.moderation import Classifier, Detector
from memantics.moderation.calibration import FoldScore
from memantics.moderation.examples import Example, order_examples
from memantics.moderation.heads import FittedHeads, choose_fit
from memantics.moderation.training import TrainOptions
from tests.moderation.samples import make_examples

pytestmark = pytest.mark.slow
EXAMPLES = make_examples(96)


def write(path: Path, order: list[int], *, ids: bool, label: str = "label") -> Path:
    rows = []
    for place in order:
        example = EXAMPLES[place]
        value = example.label if label == "label" else example.type
        row = {"text": example.text, "image_caption": example.image_caption, label: value}
        rows.append({"id": example.id, **row} if ids else row)
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def mix(seed: int) -> list[int]:
    order = list(range(len(EXAMPLES)))
    random.Random(seed).shuffle(order)
    return order


@pytest.mark.parametrize("ids", [True, False])
@pytest.mark.parametrize("preset", ["fast", "words", "linear"])
def test_permuted_rows_give_the_same_detector(preset: str, ids: bool, tmp_path: Path) -> None:
    made = []
    for seed in (0, 1):
        table = write(tmp_path / "memes.jsonl", mix(seed), ids=ids)
        Detector.train(table, options=TrainOptions(preset=preset)).save(tmp_path / f"{seed}.zip")
        made.append((tmp_path / f"{seed}.zip").read_bytes())
    assert made[0] == made[1]


def test_permuted_rows_and_copies_give_the_same_detector(tmp_path: Path) -> None:
    made = []
    for seed in (0, 1):
        table = write(tmp_path / "memes.jsonl", mix(seed), ids=True)
        options = TrainOptions(preset="fast", obfuscated=0.3, counterfactual=True)
        Detector.train(table, options=options).save(tmp_path / f"{seed}.zip")
        made.append((tmp_path / f"{seed}.zip").read_bytes())
    assert made[0] == made[1]


def test_permuted_rows_give_the_same_classifier(tmp_path: Path) -> None:
    made = []
    for seed in (0, 1):
        table = write(tmp_path / "memes.jsonl", mix(seed), ids=False, label="type")
        Classifier.train(f"{table}/type").save(tmp_path / f"{seed}.zip")
        made.append((tmp_path / f"{seed}.zip").read_bytes())
    assert made[0] == made[1]


def test_the_number_of_threads_changes_no_file(tmp_path: Path) -> None:
    write(tmp_path / "memes.jsonl", mix(0), ids=True)
    made = []
    for threads in ("1", "2"):
        out = tmp_path / f"{threads}.zip"
        named = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        subprocess.run(
            [sys.executable, "-m", "memantics", "detector", "train", "--data", "memes.jsonl",
             "--out", out.name],
            env=os.environ | dict.fromkeys(named, threads), cwd=tmp_path, check=True,
        )  # fmt: skip
        made.append(out.read_bytes())
    assert made[0] == made[1]


def test_the_card_states_the_spread_over_seeds(tmp_path: Path) -> None:
    made = Detector.train(EXAMPLES, options=TrainOptions(preset="fast"))
    made.save(tmp_path / "detector.zip")
    card = (tmp_path / "detector.card.md").read_text("utf-8")
    assert "over 5 seeds of the folds: mean" in card
    assert "worst" in card


@pytest.mark.parametrize("votes", [False, True])
def test_shuffled_files_of_a_data_set_give_the_same_model(
    votes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All that judges is equal; only checksums differ, since they are those of the files."""
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    made = []
    for seed in (0, 1):
        shutil.rmtree(tmp_path / "set", ignore_errors=True)
        (tmp_path / "set").mkdir()
        order = mix(seed)
        for part in range(3):
            rows = [write_row(EXAMPLES[place], votes) for place in order[part::3]]
            (tmp_path / f"set/train-{part}.jsonl").write_text("\n".join(rows), "utf-8")
        columns = LabelledColumns(votes=["tone"]) if votes else LabelledColumns(labels=["tone"])
        add_release(str(tmp_path / "set"), columns=columns)
        data = "set/tone_votes=harmful" if votes else "set/tone=harmful"
        path = Detector.train(data, options=TrainOptions(preset="fast")).save(tmp_path / "made.zip")
        with zipfile.ZipFile(path) as archive:
            made.append({name: archive.read(name) for name in archive.namelist()})
    assert made[0].keys() == made[1].keys()
    for name in made[0]:
        # The card names the checksum of the files, and the manifest that of the card.
        one, other = (re.sub(rb"[0-9a-f]{64}", b"", files[name]) for files in made)
        assert one == other, name


def write_row(example: Example, votes: bool) -> str:
    label = "harmful" if example.label else "harmless"
    row: dict[str, object] = {"id": example.id, "text": example.text, "tone": label}
    if votes:
        row |= {"tone": [label, label, "harmful"], "annotators": ["p", "q", "r"]}
    return json.dumps(row, ensure_ascii=False)


EXAMPLE = st.builds(
    Example, id=st.text(max_size=3), text=st.sampled_from(["", "a", "b", "苦瓜"]),
    image_caption=st.sampled_from(["", "x"]), label=st.sampled_from([None, 0, 1]),
    image=st.sampled_from([None, Path("a/1.png"), Path("b/1.png")]),
)  # fmt: skip


@given(st.lists(EXAMPLE, max_size=8), st.randoms())
@settings(max_examples=200)
def test_the_canonical_order_is_that_of_any_permutation(
    rows: list[Example], pick: random.Random
) -> None:
    other = list(rows)
    pick.shuffle(other)
    assert [rows[n] for n in order_examples(rows)] == [other[n] for n in order_examples(other)]


def test_the_strongest_penalty_within_one_standard_error() -> None:
    def make(ridge: float, value: float) -> FittedHeads:
        return FittedHeads(None, None, None, ridge, (FoldScore(value, 0.02),) * 2, "")  # type: ignore[arg-type]

    fits = [make(1.0, 0.80), make(2.0, 0.79), make(4.0, 0.77)]
    assert choose_fit(fits, strongest=max).ridge == 2.0
    assert choose_fit(fits, strongest=min).ridge == 1.0
