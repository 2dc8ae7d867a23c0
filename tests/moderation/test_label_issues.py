"""Label errors that training reports."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

from memantics.moderation.examples import Example, Loaded
from memantics.moderation.fast import Prediction
from memantics.moderation.label_errors import count_contradictions, describe_label_issues
from tests.commands import Shell
from tests.moderation.commands import run
from tests.moderation.samples import make_examples


def test_texts_with_both_labels_are_counted_once() -> None:
    memes = [
        Example("a", "What a DAY", label=0),
        Example("b", "what a day!", label=1),
        Example("c", "what a day", label=1),
        Example("d", "another", label=1),
        Example("e", "another", label=1),
        Example("f", "", label=0),
        Example("g", "", label=1),
        Example("h", "unlabelled"),
    ]
    assert count_contradictions(memes) == (1, 3)
    assert count_contradictions([]) == (0, 0)


def test_sound_labels_give_no_line() -> None:
    memes = tuple(Example(str(n), f"text {n}", label=n % 2) for n in range(10))
    said = [Prediction(e.id, e.label or 0, 0.1 + 0.8 * (e.label or 0), None, {}) for e in memes]
    assert describe_label_issues(Loaded("x", memes), said) == ()
    turned = [Prediction(e.id, 0, 0.9 - 0.8 * (n > 0) * (1 - n % 2), None, {})
              for n, e in enumerate(memes)]  # fmt: skip
    (line,) = describe_label_issues(Loaded("x", memes), turned)
    assert line.startswith("1 labels are likely wrong")


def test_a_weak_detector_does_not_call_labels_wrong() -> None:
    memes = tuple(Example(str(n), f"text {n}", label=int(n < 30)) for n in range(100))
    # It agrees with 73 of 100 labels, where 70 are harmless.
    said = [Prediction(e.id, 0, 0.9 if n < 15 or n >= 88 else 0.1, None, {})
            for n, e in enumerate(memes)]  # fmt: skip
    (line,) = describe_label_issues(Loaded("x", memes), said)
    assert re.match(r"\d+ labels contradict held-out predictions, which agree with 73%", line)
    assert "most of these are errors of the detector" in line
    assert "review them with 'memantics audit" in line


def test_training_reports_planted_errors_with_the_command(tmp_path: Path) -> None:
    table = tmp_path / "posts.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("post_id", "caption", "label"))
        for n, e in enumerate(make_examples(120)):
            rows.writerow((e.id, e.text, (1 - (e.label or 0)) if n < 5 else e.label))
        rows.writerow(("again", make_examples(120)[0].text, make_examples(120)[0].label))
    said = run("train", "--data", table, "--preset", "ridge", "--out", tmp_path / "d.zip")
    flat = " ".join(said.split())
    assert "2 memes share a text with a meme of the other label (1 texts)" in flat
    assert "labels are likely wrong by held-out predictions" in flat
    command = "memantics audit posts.csv/label --labels"
    assert f"review them with '{command}'" in flat
    # The printed command reads the same table, and queues the labels.
    shell = Shell(tmp_path)
    shell.done(*command.split()[1:])
    (queue,) = tmp_path.rglob("items.jsonl")
    texts = [e.text for e in make_examples(120)]
    items = [json.loads(line) for line in queue.read_text("utf-8").splitlines()]
    assert items
    assert all(any(shown["value"] in texts for shown in item["shown"]) for item in items)


def test_a_column_that_audits_do_not_know_is_renamed_first() -> None:
    memes = tuple(Example(str(n), f"text {n}", label=n % 2) for n in range(10))
    said = [Prediction(e.id, 0, 0.9 - 0.8 * (n > 0) * (1 - n % 2), None, {})
            for n, e in enumerate(memes)]  # fmt: skip
    (line,) = describe_label_issues(Loaded("x.csv", memes, columns={"text": "words"}), said)
    assert "rename the column words to text, and review them with 'memantics audit x" in line
