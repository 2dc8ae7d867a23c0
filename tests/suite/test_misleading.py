"""Numbers that would mislead: each is prevented, or said."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.benchmarks.factories import read_text
from memantics.benchmarks.registry import find_tasks
from memantics.core.errors import DataError
from memantics.core.records import Form, Item
from memantics.core.rundir import read_items
from memantics.evaluation import tasks as registry_tasks
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.facts import Scope
from memantics.evaluation.reports.leaderboard import make_boards
from memantics.evaluation.reports.tables import render_markdown
from memantics.evaluation.run import choose
from memantics.evaluation.tasks import pose_task
from tests.commands import Shell
from tests.report.test_leaderboard import make_run
from tests.report.test_published import RELEASE, published

BLANK = Form("", ())


def repeat_memes(turns: str) -> list[Item]:
    """An item for each letter, which names its meme; a letter again is the next turn of it."""
    seen: Counter[str] = Counter()
    items = []
    for meme in turns:
        seen[meme] += 1
        tags = {"turn": str(seen[meme])}
        items.append(Item(f"{meme}@{seen[meme]}", meme, "", BLANK, tags=tags))
    return items


@pytest.mark.parametrize(
    ("limit", "found"),
    [
        (1, "a@1"),
        (3, "a@1 b@1 c@1"),
        (4, "a@1 a@2 b@1 c@1"),
        (5, "a@1 a@2 b@1 b@2 c@1"),
        (6, "a@1 a@2 a@3 b@1 b@2 c@1"),
    ],
)
def test_a_limit_takes_every_meme_once_before_one_twice(limit: int, found: str) -> None:
    items = repeat_memes("aaabbc")
    chosen = choose(items, limit, [])
    taken = {item.id for item in items[:limit]} if chosen is None else chosen.ids
    assert " ".join(sorted(taken)) == found


def test_questions_of_one_meme_are_no_repeats_without_a_turn() -> None:
    items = [replace(item, tags={}) for item in repeat_memes("aabb")]
    assert choose(items, 2, []) is None


def test_the_sentiment_of_twelve_is_that_of_twelve_memes() -> None:
    (ref,) = find_tasks(["punmemecn/sentiment"])
    whole = {item.group for item in pose_task(ref, {}, Scope("sample")).task.items()}
    posed = pose_task(ref, {}, Scope("sample", limit=len(whole)))
    assert {item.group for item in posed.task.items()} == whole
    assert posed.total == len(whole)


def test_a_run_without_one_readable_reply_ends_with_1_and_shows_the_first(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    ran = shell.run("run", "mquest/qa", "--model", "fake/echo", "--limit", "3")
    assert ran.code == 1
    assert "none of 3 replies could be parsed (no option letter found)" in ran.err
    assert "first reply: '" in ran.err
    # One reply that can be read is a result.
    assert shell.run("run", "mquest/qa", "--model", "fake/keys", "--limit", "3").code == 0


def ask_sample(folder: Path) -> mm.Run:
    return mm.evaluate(
        "mquest/qa",
        "baseline/longest",
        out=folder,
        settings=mm.EvaluationSettings(sample=6, seed=3),
    )


def write_answers(run: mm.Run, path: Path, answer: str = "answer") -> Path:
    lines = [f"id,{answer}"]
    lines += [f"{line.item.id},{line.item.gold}" for line in read_items(run.folder)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_an_imported_file_is_a_run_on_the_items_that_it_has(tmp_path: Path) -> None:
    asked = ask_sample(tmp_path)
    path = write_answers(asked, tmp_path / "mine.csv")
    n = sum(asked.counts.values())
    done = mm.import_answers(
        path, task="mquest/qa", model="mine", settings=mm.ImportSettings(out=tmp_path)
    )
    assert done.without_answer > 0
    assert dict(done.run.counts) == {"answered": n, "refused": 0, "unparsed": 0, "failed": 0}
    whole = n + done.without_answer
    assert f"mine.csv, {n} of {whole} items" in str(done.run.to_dict()["origin"])
    assert mm.compare(asked, done.run).shared == n
    # With the sample named it answers the same questions as that run, all of them.
    settings = mm.ImportSettings(out=tmp_path, sample=6, seed=3)
    same = mm.import_answers(path, task="mquest/qa", model="mine", settings=settings)
    assert same.without_answer == 0
    assert same.run.facts.origin == "imported from mine.csv"
    assert len(make_boards([asked, same.run])) == 1


def test_the_command_says_what_the_file_lacks_and_that_is_no_failure(tmp_path: Path) -> None:
    path = write_answers(ask_sample(tmp_path), tmp_path / "mine.csv")
    ran = Shell(tmp_path).run("import-answers", path, "--task", "mquest/qa", "--model", "mine")
    assert ran.code == 0, ran
    assert "items are missing in mine.csv: metrics cover the others" in ran.err


def test_a_column_answer_is_taken_where_no_other_could_be_meant(tmp_path: Path) -> None:
    run = ask_sample(tmp_path)
    path = write_answers(run, tmp_path / "mine.csv")
    lines = path.read_text(encoding="utf-8").splitlines()
    other = tmp_path / "both.csv"
    other.write_text(f"{lines[0]},gpt\n{lines[1]},A\n", encoding="utf-8")
    shell = Shell(tmp_path)
    said = shell.refused("import-answers", other, "--task", "mquest/qa", "--model", "mine")
    assert "--column answer=NAME" in said
    named = ("--column", "answer=answer")
    ran = shell.run("import-answers", other, "--task", "mquest/qa", "--model", "mine", *named)
    assert ran.code == 0, ran


@pytest.mark.parametrize(
    ("held", "said"),
    [
        ({"accuracy": 0.81, "macro_f1": 0.7}, "has metrics but no answers: accuracy, macro_f1"),
        ({"results": {"acc": 1}}, "is one JSON object, not a list of answers: results"),
    ],
)
def test_metrics_are_refused_as_what_they_are(
    held: dict[str, object], said: str, tmp_path: Path
) -> None:
    path = tmp_path / "scores.json"
    path.write_bytes(orjson.dumps(held))
    line = Shell(tmp_path).refused("import-answers", path, "--task", "mquest/qa", "--model", "m")
    assert said in line
    assert "Inspect" not in line


@pytest.mark.parametrize("name", ["mquest/qa", "punmemecn/detection", "memeintent/intent"])
def test_importing_needs_no_images(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A copy of the data whose images are not there."""
    (ref,) = find_tasks([name])
    bare = replace(ref.benchmark.sample(), images=tmp_path)
    monkeypatch.setattr(registry_tasks, "find_source", lambda *_: bare)
    with pytest.raises(DataError, match="its image is not in this copy"):
        pose_one(name, TaskChoiceSettings())
    posed = pose_one(name, TaskChoiceSettings(), unseen=True)
    whole = sum(1 for _ in posed.task.items())
    path = tmp_path / "mine.csv"
    rows = [f"{item.id},A" for item in posed.task.items()]
    path.write_text("\n".join(["id,answer", *rows]), encoding="utf-8")
    done = mm.import_answers(
        path, task=name, model="mine", settings=mm.ImportSettings(out=tmp_path / "runs")
    )
    assert sum(done.run.counts.values()) == whole > 0


@pytest.mark.parametrize(
    ("said", "read"),
    [
        ("**The meme** mocks *Mondays*", "The meme mocks Mondays"),
        ("__so__ ***much*** `work`", "so much work"),
        ("# Intent\nthe meme jokes", "Intent\nthe meme jokes"),
        ("“the meme jokes”", "the meme jokes"),
        ('"the meme jokes"', "the meme jokes"),
        ("这个**双关**很好", "这个双关很好"),
        ('"no" and "yes"', '"no" and "yes"'),
        ("* one\n* two", "* one\n* two"),
        ("2*3*4 and snake_case__name", "2*3*4 and snake_case__name"),
        ("don't", "don't"),
    ],
)
def test_marks_of_markdown_are_no_part_of_free_text(said: str, read: str) -> None:
    assert read_text(said, BLANK) == read


def test_marks_change_no_metric(tmp_path: Path) -> None:
    plain, marked = "the meme mocks Mondays", '"**the meme** mocks *Mondays*"'
    scores = []
    for name, said in (("plain", plain), ("marked", marked)):
        first = mm.evaluate(
            "memeintent/intent",
            "baseline/constant",
            out=tmp_path,
            settings=mm.EvaluationSettings(limit=4),
        )
        path = tmp_path / f"{name}.jsonl"
        rows = [{"id": line.item.id, "answer": said} for line in read_items(first.folder)]
        path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
        settings = mm.ImportSettings(limit=4, out=tmp_path)
        done = mm.import_answers(path, task="memeintent/intent", model=name, settings=settings)
        scores.append({key: score.value for key, score in done.run.scores.items()})
    assert scores[0] == scores[1]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({}, ""), ({"limit": 4}, "use 10 items, runs here 10"), ({"sample": 4}, "cannot be")],
)
def test_a_small_run_beside_published_rows_says_so(changes: dict[str, object], said: str) -> None:
    rows = {"mquest/qa": [published("P", 0.9, sizes={"accuracy": 10})]}
    run = make_run("a/x", 0.2, data=RELEASE)
    run = replace(run, facts=replace(run.facts, **changes))  # type: ignore[arg-type]
    (board,) = make_boards([run], rows)
    assert (said in board.caution) == bool(said or not board.caution)
    assert bool(board.caution) == bool(said)
    assert (board.caution or "Published rows use") in render_markdown([run], rows) or not said


@pytest.mark.parametrize(("stated", "warned"), [(11, False), (12, True)])
def test_as_many_items_as_the_paper_but_for_a_tenth_are_enough(stated: int, warned: bool) -> None:
    rows = {"mquest/qa": [published("P", 0.9, sizes={"accuracy": stated})]}
    (board,) = make_boards([make_run("a/x", 0.2, data=RELEASE)], rows)
    assert bool(board.caution) == warned
