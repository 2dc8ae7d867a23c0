"""Retraining: labels from annotations, the comparison, and when the old detector is kept."""

from __future__ import annotations

import hashlib
import json
import random
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.metrics import precision_score, recall_score, roc_auc_score
from typer.testing import CliRunner

from memantics.cli.main import make_app
from memantics.core.errors import InputError
from memantics.core.queue import AggregatedAnnotation, IndividualAnnotation, write_annotations
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.labels import decide, is_held_out, put_together, read_decisions
from memantics.moderation.operating_points import Rate
from memantics.moderation.replacement import (
    ReplacementComparison,
    ShuffleTest,
    compare_detectors,
    match_threshold,
)
from memantics.moderation.retrain import explain_refusal, retrain
from memantics.moderation.training import set_point
from tests.moderation.commands import run
from tests.moderation.samples import BITTER, SWEET, make_examples


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
        (("yes", "unsure"), 1, 0.5),
        (("yes", "no", "unsure"), 0, 0.0),
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
        item=name, group=name, workflow="review", kept=True, values={}, annotations=said,
        hidden={"id": name, "text": text},
    )  # fmt: skip


def test_files_are_put_together_by_their_texts(tmp_path: Path) -> None:
    write_annotations(
        tmp_path / "one.jsonl",
        [
            make_verdict("a", "so much rain", ("label", "yes"), ("label", "no")),
            make_verdict("b", "sun", ("label", "yes"), ("label", "no"), ("adjudicate", "yes")),
            make_verdict("e", "fog", ("review", "yes"), ("review", "no"), ("settle_ties", "no")),
        ],
    )
    (tmp_path / "queue").mkdir()
    write_annotations(
        tmp_path / "queue" / "annotations.jsonl",
        [make_verdict("c", "So  much RAIN!", ("label", "no")), make_verdict("d", "snow")],
    )
    found = read_decisions([tmp_path / "one.jsonl", tmp_path / "queue"])
    assert [(e.id, e.label) for e in found.examples] == [
        ("reviewed/a", 0),
        ("reviewed/b", 1),
        ("reviewed/e", 0),
    ]
    assert list(found.weights) == pytest.approx([1 / 3, 1.0, 1.0])
    assert found.undecided == 1
    known = [Example("1", "SO much rain", label=1), Example("2", "sun.", label=1),
             Example("3", "wind", label=0)]  # fmt: skip
    kept, changed = put_together(known, found)
    assert ([e.id for e in kept], changed) == (["3"], 1)


def test_one_caption_on_two_images_is_two_memes(tmp_path: Path) -> None:
    """Annotations and earlier labels are matched by image and caption, where the image is known."""
    text, images = "love the way you smell today", []
    for name in ("rose", "skunk", "sock"):
        path = tmp_path / f"{name}.png"
        path.write_bytes(name.encode())
        images.append(path)
    made = []
    for name, image, said in (("a", images[0], "no"), ("b", images[1], "yes")):
        verdict = make_verdict(name, text, ("label", said))
        digest = hashlib.sha256(image.read_bytes()).hexdigest()
        made.append(verdict.model_copy(update={"hidden": {**verdict.hidden, "sha256": digest}}))
    write_annotations(tmp_path / "v.jsonl", made)
    found = read_decisions([tmp_path / "v.jsonl"])
    assert [(e.id, e.label) for e in found.examples] == [("reviewed/a", 0), ("reviewed/b", 1)]
    assert found.ambiguous == 2
    known = [Example(f"k{n}", text, image=image, label=1) for n, image in enumerate(images)]
    kept, changed = put_together([*known, Example("bare", text, label=1)], found)
    # The third image was not annotated, and the labels of the caption alone are ambiguous.
    assert ([e.id for e in kept], changed) == (["k2", "bare"], 1)
    # An annotation without an image counts for the caption, unless the image has its own.
    more = make_verdict("c", text, ("label", "no"))
    write_annotations(tmp_path / "v.jsonl", [made[1], more])
    kept, changed = put_together(known, read_decisions([tmp_path / "v.jsonl"]))
    assert ([e.id for e in kept], changed) == ([], 2)
    write_annotations(tmp_path / "v.jsonl", [made[0]])
    found = read_decisions([tmp_path / "v.jsonl"])
    assert found.ambiguous == 0
    assert put_together([Example("bare", text, label=1)], found) == ([], 1)


def test_an_appeal_replaces_the_review_and_gold_items_are_no_labels(tmp_path: Path) -> None:
    """Else the review and the overturned appeal of a post are a tie, and nothing is learnt."""
    rows = [
        make_verdict(name, text, ("review", said))
        for name, text, said in (("a", "so much rain", "yes"), ("b", "sun", "yes"))
    ]
    gold = make_verdict("g", "an example of the policy", ("review", "yes"))
    rows.append(gold.model_copy(update={"hidden": {**gold.hidden, "gold": "1"}}))
    write_annotations(tmp_path / "reviewed.jsonl", rows)
    appeal = make_verdict("dec-1", "so much rain", ("review", "no"))
    hidden = {**appeal.hidden, "decision": "dec-1"}
    write_annotations(tmp_path / "over.jsonl", [appeal.model_copy(update={"hidden": hidden})])
    for names in (("reviewed", "over"), ("over", "reviewed")):
        found = read_decisions([tmp_path / f"{name}.jsonl" for name in names])
        assert {e.text: e.label for e in found.examples} == {"so much rain": 0, "sun": 1}
        assert (found.weights, found.undecided) == ((1.0, 1.0), 0)


def test_verdicts_without_a_text_are_counted_and_no_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no annotations at"):
        read_decisions([tmp_path / "gone.jsonl"])
    made = [make_verdict(name, text, ("label", "yes")) for name, text in (("a", " "), ("b", "x"))]
    write_annotations(tmp_path / "v.jsonl", made)
    found = read_decisions([tmp_path / "v.jsonl"])
    assert [example.text for example in found.examples] == ["x"]
    assert (found.textless, found.people) == (1, 1)


def make_comparison(
    difference: float | None, low: float | None, high: float | None
) -> ReplacementComparison:
    none = Rate(0)
    moved = 0.5 + (difference or 0.0)
    return ReplacementComparison(
        9, 4, (0.5, moved), difference, low, high, (0.5, 0.5), (none, none), (none, none)
    )


@pytest.mark.parametrize(
    ("held", "reviewed", "p", "kept"),
    [
        ((-0.1, -0.2, -0.01), (0.3, 0.1, 0.5), 0.01, "significantly worse on the held-out memes"),
        ((0.1, 0.0, 0.2), (-0.1, -0.2, -0.01), 0.01, "significantly worse on the reviewed memes"),
        ((-0.1, -0.2, 0.0), (0.1, -0.1, 0.1), 0.05, ""),
        ((0.1, 0.0, 0.2), (0.2, 0.1, 0.3), 0.06, "within that of shuffled labels (p = 0.06)"),
        ((0.0, -0.2, 0.1), (None, None, None), None, "all annotations have one label"),
        ((0.01, -0.2, 0.1), (None, None, None), None, ""),
    ],
)
def test_the_old_detector_is_kept_unless_the_gain_is_real(
    held: tuple[float, Any, Any], reviewed: tuple[Any, Any, Any], p: float | None, kept: str
) -> None:
    gain = ShuffleTest(0.1, 99, 0.05, p)
    pair = make_comparison(*held), make_comparison(*reviewed)
    found = explain_refusal(*pair, gain)
    assert kept in found
    assert bool(found) == bool(kept)
    assert explain_refusal(*pair, gain, force=True) == ""
    level = ShuffleTest(0.0, 99, -0.1, 0.01)
    assert explain_refusal(make_comparison(0.1, 0, 0.2), make_comparison(0.1, 0, 0.2), level)


def test_areas_and_rates_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 2, 200)
    old, new = rng.random(200), np.clip(0.4 * truth + rng.random(200) * 0.6, 0, 1)
    examples = [Example(str(n), "t", label=int(label)) for n, label in enumerate(truth)]
    found = compare_detectors(examples, old.tolist(), new.tolist(), (0.5, 0.6))
    areas = [roc_auc_score(truth, said) for said in (old, new)]
    assert found.auroc == pytest.approx(tuple(areas))
    assert found.difference == pytest.approx(areas[1] - areas[0])
    assert found.low is not None
    assert found.low < areas[1] - areas[0] < (found.high or 0)
    for place, (said, threshold) in enumerate(((old, 0.5), (new, 0.6))):
        flagged = said >= threshold
        assert found.precision[place].value == pytest.approx(precision_score(truth, flagged))
        assert found.recall[place].value == pytest.approx(recall_score(truth, flagged))
    one = compare_detectors([Example("a", "t", label=1)], [0.5], [0.6], (0.5, 0.5))
    assert (one.difference, one.low, one.auroc) == (None, None, (None, None))


def test_thresholds_flag_equally_many_memes() -> None:
    rng = np.random.default_rng(4)
    old, new = rng.random(50).tolist(), (rng.random(50) / 3).tolist()
    for threshold in (0.0, 0.3, 0.9, 1.1):
        matched = match_threshold(old, threshold, new)
        assert sum(value >= matched for value in new) == sum(value >= threshold for value in old)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Memes, a detector on them, and annotations on memes that it does not know."""
    monkeypatch.chdir(tmp_path)
    lines = [{"id": e.id, "text": e.text, "label": e.label} for e in make_examples(120)]
    Path("memes.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    Detector.train("memes.jsonl", "ridge").save("old.zip")
    new = make_examples(60, seed=9)
    # Words that the detector has never seen: there is something to learn.
    known, sweet = "|".join(BITTER.values()), "|".join(SWEET)
    texts = [re.sub(sweet, "枇杷", re.sub(known, "野芥", e.text)) for e in new]
    right = [
        make_verdict(e.id, text, ("label", "yes" if e.label else "no"))
        for e, text in zip(new, texts, strict=True)
    ]
    write_annotations(Path("right.jsonl"), right)
    # People who call every meme the opposite of what it is.
    many = make_examples(150, seed=9)
    wrong = [make_verdict(e.id, e.text, ("label", "no" if e.label else "yes")) for e in many]
    write_annotations(Path("wrong.jsonl"), wrong)
    return tmp_path


@pytest.mark.slow
def test_a_detector_learns_and_keeps_its_rule(client: Path) -> None:
    set_point(client / "old.zip", operating_point="recall=0.9", review_range=(0.2, 0.8))
    before = (client / "old.zip").read_bytes()
    done = retrain(client / "old.zip", annotations=[client / "right.jsonl"], out=client / "new.zip")
    assert (done.refused, done.reviewed, done.learnt_from) == ("", 60, 180)
    assert (client / "old.zip").read_bytes() == before
    new = Detector.load(client / "new.zip")
    assert (new.point.rule, new.point.review_range) == ("recall=0.9", (0.2, 0.8))
    assert new.card["examples"] == 180
    held = [e for e in make_examples(120) if is_held_out(e)]
    assert 0 < len(held) < 60
    assert done.held_out.memes == len(held)
    assert (done.shuffled.shuffles, done.shuffled.p) == (99, 0.01)
    # What was learnt is learnt from again, with the table found by its name and checksum.
    again = retrain(client / "new.zip", annotations=[client / "right.jsonl"])
    assert again.learnt_from == 180
    assert "no better than the old one" in again.refused  # nothing new is in them


@pytest.mark.slow
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
    assert "significantly worse on the held-out memes; use --force" in " ".join(done.stderr.split())
    assert (client / "old.zip").read_bytes() == before
    assert "trained with 270 memes, 150 of them reviewed" in " ".join(
        run(*words, "--force").split()
    )
    assert (client / "old.zip").read_bytes() != before


def test_what_cannot_be_learnt_from_says_so(client: Path) -> None:
    (client / "memes.jsonl").rename(client / "moved.jsonl")
    with pytest.raises(InputError, match=r"\(memes\.jsonl\) were not found; give them with --data"):
        retrain(client / "old.zip", annotations=[client / "right.jsonl"])
    write_annotations(client / "ties.jsonl", [make_verdict("a", "x", ("label", "maybe"))])
    with pytest.raises(InputError, match="annotations decide on no text; collect"):
        retrain(client / "old.zip", annotations=[client / "ties.jsonl"], data="moved.jsonl")
    write_annotations(client / "bare.jsonl", [make_verdict("a", "", ("label", "yes"))])
    with pytest.raises(InputError, match="1 annotations are on images without text"):
        retrain(client / "old.zip", annotations=[client / "bare.jsonl"], data="moved.jsonl")
    both = [client / "right.jsonl", client / "bare.jsonl"]
    done = retrain(client / "old.zip", annotations=both, data="moved.jsonl", out=client / "new.zip")
    assert done.reviewed == 60
    assert "1 annotations of images without text were skipped" in done.notes[1]


def test_labels_by_coin_toss_do_not_replace_a_detector(client: Path) -> None:
    """Half of the reviewers' labels are wrong: nothing can be learnt from them."""
    coin = random.Random(5)
    tossed = [
        make_verdict(e.id, e.text, ("label", coin.choice(["yes", "no"])))
        for e in make_examples(60, seed=9)
    ]
    write_annotations(client / "tossed.jsonl", tossed)
    before = (client / "old.zip").read_bytes()
    done = retrain(client / "old.zip", annotations=[client / "tossed.jsonl"])
    assert re.search("shuffled labels|worse|no better", done.refused)
    assert done.shuffled.p is not None
    assert (client / "old.zip").read_bytes() == before


def test_a_stored_review_range_is_kept_and_a_gap_is_reviewed(client: Path) -> None:
    set_point(client / "old.zip", threshold=0.9, review_range=(0.3, 0.5))
    done = retrain(client / "old.zip", annotations=[client / "right.jsonl"])
    point = Detector.load(client / "old.zip").point
    assert (point.threshold, point.review_range, point.band(0.86)) == (0.9, (0.3, 0.5), "review")
    assert any("are reviewed" in note for note in done.notes)
