"""Learning from people's annotations: the written rule, the comparison, and when the old one stays."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from memantics.cli.main import make_app
from memantics.core.errors import InputError
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.moderation.detect import Detector
from memantics.moderation.evaluation import DetectorComparison, compare
from memantics.moderation.examples import Example
from memantics.moderation.fast import Prediction
from memantics.moderation.labels import decide, is_held_out, put_together, read_decisions
from memantics.moderation.retrain import explain_refusal, retrain
from memantics.moderation.training import set_point
from tests.moderation.commands import run
from tests.moderation.samples import make_examples


def vote(*said: str, **more: str) -> list[dict[str, Any]]:
    return [{"harmful": one, **more} for one in said]


@pytest.mark.parametrize(
    ("said", "label", "weight"),
    [
        (("yes",), 1, 1.0),
        (("no", "no", "no"), 0, 1.0),
        (("yes", "yes", "no"), 1, 1 / 3),
        (("yes", "no", "no"), 0, 1 / 3),
        (("yes", "maybe"), 1, 0.5),
        (("no", "maybe"), 0, 0.5),
        (("yes", "maybe", "maybe"), 1, 1 / 3),
        (("yes", "no"), 0, 0.0),
        (("maybe", "maybe"), 0, 0.0),
        (("yes", "no", "maybe"), 0, 0.0),
        ((), 0, 0.0),
    ],
)
def test_answers_become_a_label_by_the_written_rule(
    said: tuple[str, ...], label: int, weight: float
) -> None:
    found, heavy, kind = decide(vote(*said, type="innuendo"))
    assert found == label
    assert heavy == pytest.approx(weight)
    assert kind == ("sexual" if label else "none")


def make_verdict(name: str, text: str, *votes: tuple[str, str]) -> AggregatedAnnotation:
    said = [
        IndividualAnnotation(annotator=f"p{n}", stage=stage, values={"harmful": value})
        for n, (stage, value) in enumerate(votes)
    ]
    return AggregatedAnnotation(
        item=name, group=name, workflow="review-harm", kept=True, values={}, annotations=said,
        hidden={"id": name, "text": text},
    )  # fmt: skip


def test_files_are_put_together_by_their_texts(tmp_path: Path) -> None:
    write_annotations(
        tmp_path / "one.jsonl",
        [
            make_verdict("a", "so much rain", ("label", "yes"), ("label", "no")),
            make_verdict("b", "sun", ("label", "yes"), ("label", "no"), ("adjudicate", "yes")),
        ],
    )
    (tmp_path / "queue").mkdir()
    write_annotations(
        tmp_path / "queue" / "annotations.jsonl",
        [make_verdict("c", "So  much RAIN!", ("label", "no")), make_verdict("d", "snow")],
    )
    found = read_decisions([tmp_path / "one.jsonl", tmp_path / "queue"])
    assert [(e.id, e.label) for e in found.examples] == [("reviewed/a", 0), ("reviewed/b", 1)]
    assert list(found.weights) == pytest.approx([1 / 3, 1.0])
    assert found.undecided == 1
    known = [Example("1", "SO much rain", label=1), Example("2", "sun.", label=1),
             Example("3", "wind", label=0)]  # fmt: skip
    kept, changed = put_together(known, found)
    assert ([e.id for e in kept], changed) == (["3"], 1)


def test_verdicts_without_a_text_are_counted_and_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no annotations at"):
        read_decisions([tmp_path / "gone.jsonl"])
    made = [make_verdict(name, text, ("label", "yes")) for name, text in (("a", " "), ("b", "x"))]
    write_annotations(tmp_path / "v.jsonl", made)
    found = read_decisions([tmp_path / "v.jsonl"])
    assert [example.text for example in found.examples] == ["x"]
    assert (found.textless, found.people) == (1, 1)


def make_comparison(difference: float, low: float | None, high: float | None) -> DetectorComparison:
    return DetectorComparison(9, 0.5, 0.5 + difference, difference, low, high, 0, 0, 9, 0, 1.0)


@pytest.mark.parametrize(
    ("held", "reviewed", "stays"),
    [
        ((-0.1, -0.2, -0.01), (0.3, 0.1, 0.5), "worse on the held-out memes, beyond chance"),
        ((0.1, 0.0, 0.2), (-0.1, -0.2, -0.01), "worse on the reviewed memes, beyond chance"),
        ((-0.1, -0.2, 0.0), (0.0, -0.1, 0.1), "no better on the reviewed ones"),
        ((-0.1, -0.2, 0.0), (0.01, -0.1, 0.1), ""),
        ((0.0, -0.2, 0.1), (-0.1, -0.2, 0.0), ""),
        ((-0.1, None, None), (0.1, None, None), ""),
    ],
)
def test_the_old_one_stays_where_it_is_better(
    held: tuple[float, Any, Any], reviewed: tuple[float, Any, Any], stays: str
) -> None:
    pair = make_comparison(*held), make_comparison(*reviewed)
    found = explain_refusal(*pair)
    assert stays in found
    assert bool(found) == bool(stays)
    assert explain_refusal(*pair, force=True) == ""


def test_pairs_of_one_class_have_an_interval() -> None:
    examples = [Example(str(n), "t", label=1) for n in range(8)]
    said = [Prediction(e.id, n % 2, 0.5, None, {}) for n, e in enumerate(examples)]
    right = [replace(one, label=1) for one in said]
    found = compare(examples, said, right)
    assert found.second == 1.0
    assert found.low is not None
    assert 0 < found.low <= found.difference


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Memes, a detector on them, and annotations on memes that it does not know."""
    monkeypatch.chdir(tmp_path)
    lines = [{"id": e.id, "text": e.text, "label": e.label} for e in make_examples(120)]
    Path("memes.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    Detector.train("memes.jsonl", "ridge").save("old.zip")
    new = make_examples(24, seed=9)
    right = [make_verdict(e.id, e.text, ("label", "yes" if e.label else "no")) for e in new]
    write_annotations(Path("right.jsonl"), right)
    # People who call every meme the opposite of what it is.
    many = make_examples(150, seed=9)
    wrong = [make_verdict(e.id, e.text, ("label", "no" if e.label else "yes")) for e in many]
    write_annotations(Path("wrong.jsonl"), wrong)
    return tmp_path


def test_a_detector_learns_and_keeps_its_rule(client: Path) -> None:
    set_point(client / "old.zip", operating_point="recall=0.9", review_range=(0.2, 0.8))
    before = (client / "old.zip").read_bytes()
    done = retrain(client / "old.zip", annotations=[client / "right.jsonl"], out=client / "new.zip")
    assert (done.refused, done.reviewed, done.learnt_from) == ("", 24, 144)
    assert (client / "old.zip").read_bytes() == before
    new = Detector.load(client / "new.zip")
    assert (new.point.rule, new.point.review_range) == ("recall=0.9", (0.2, 0.8))
    assert new.card["examples"] == 144
    held = [e for e in make_examples(120) if is_held_out(e)]
    assert 0 < len(held) < 60
    assert done.held_out.count == len(held)
    # What was learnt is learnt from again, with the table found by its name and checksum.
    again = retrain(client / "new.zip", annotations=[client / "right.jsonl"])
    assert again.learnt_from == 144


def test_a_worse_detector_does_not_replace_a_better_one(client: Path) -> None:
    before = (client / "old.zip").read_bytes()
    words = (
        "retrain",
        client / "old.zip",
        "--annotations",
        client / "wrong.jsonl",
        "--data",
        "memes.jsonl",
    )
    done = CliRunner().invoke(make_app(), ["detector", *map(str, words)])
    assert done.exit_code == 1
    assert "worse on the held-out memes, beyond chance; --force writes it" in done.stderr
    assert (client / "old.zip").read_bytes() == before
    assert "trained with 270 reviewed memes" in " ".join(run(*words, "--force").split())
    assert (client / "old.zip").read_bytes() != before


def test_what_cannot_be_learnt_from_says_so(client: Path) -> None:
    (client / "memes.jsonl").rename(client / "moved.jsonl")
    with pytest.raises(InputError, match=r"memes\.jsonl\) is not at hand; add --data"):
        retrain(client / "old.zip", annotations=[client / "right.jsonl"])
    write_annotations(client / "ties.jsonl", [make_verdict("a", "x", ("label", "maybe"))])
    with pytest.raises(InputError, match="people decided on no text; ask"):
        retrain(client / "old.zip", annotations=[client / "ties.jsonl"], data="moved.jsonl")
    write_annotations(client / "bare.jsonl", [make_verdict("a", "", ("label", "yes"))])
    with pytest.raises(InputError, match="1 annotations are on pictures without a text"):
        retrain(client / "old.zip", annotations=[client / "bare.jsonl"], data="moved.jsonl")
    both = [client / "right.jsonl", client / "bare.jsonl"]
    done = retrain(client / "old.zip", annotations=both, data="moved.jsonl", out=client / "new.zip")
    assert done.reviewed == 24
    assert "1 annotations on pictures without a text were left out" in done.notes[1]
