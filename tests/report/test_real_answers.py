"""Reports of real answers: verdicts, gold options, judges, chance and invalid replies."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from memantics.core.records import Score
from memantics.core.rundir import read_items, read_scores, write_scores
from memantics.evaluation.evaluate import EvaluationSettings, evaluate
from memantics.evaluation.report import report
from memantics.evaluation.reports.leaderboard import make_boards
from memantics.evaluation.reports.page import make_section
from memantics.evaluation.reports.payload import OPEN, RIGHT, WRONG, judge_answer
from memantics.evaluation.reports.runs import Run, load_run
from memantics.evaluation.scoring import average
from tests.browser import watch


def ask(task: str, model: str = "baseline/random", limit: int = 9) -> Run:
    return evaluate(
        task, model, out="runs", settings=EvaluationSettings(data="sample", limit=limit)
    )


def read_payload(*runs: Run) -> dict[str, Any]:
    page = report(runs, "report.html", images=False).read_text(encoding="utf-8")
    (found,) = re.findall(r'<script type="application/json" id="data-[^"]+">(.*?)</script>', page)
    read: dict[str, Any] = json.loads(found)
    return read


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_sentiment_has_verdicts_and_both_gold_options() -> None:
    data = read_payload(ask("punmemecn/sentiment"))
    verdicts = [item["answers"][0]["verdict"] for item in data["items"]]
    assert set(verdicts) <= {RIGHT, WRONG}
    words = {"self": "自己", "both": "双方", "other": "他人"}
    kinds = {"positive": "积极", "neutral": "中性", "negative": "消极"}
    for item in data["items"]:
        tags = dict(item["tags"])
        assert item["keys"] == [words[tags["target"]], kinds[tags["type"]]]
    assert judge_answer("answered", {"a": True}, {"a": 1}) == WRONG
    assert judge_answer("answered", {"a": "x"}, {"a": "x", "b": "y"}) == WRONG
    assert judge_answer("answered", {"a": [1]}, {"a": [1]}) == OPEN
    assert judge_answer("answered", {}, {}) == OPEN


@pytest.mark.slow
def test_gold_is_marked_where_the_sheet_names_it_otherwise() -> None:
    data = read_payload(ask("toxicn_mm/type"))
    for item in data["items"]:
        assert data["texts"][item["gold"]] not in item["keys"]
        assert item["keys"][0] in {
            option[0] for option in data["sheets"][item["sheet"]][0]["options"]
        }
    letters = read_payload(ask("mquest/qa"))
    assert all([letters["texts"][own["gold"]]] == own["keys"] for own in letters["items"])
    free = read_payload(ask("memeintent/intent", limit=2))
    assert all(own["keys"] == [None] for own in free["items"])


@pytest.mark.slow
def test_judges_are_not_ranked_and_editors_are() -> None:
    runs = [
        ask("mer_bench/judge", model, limit=24)
        for model in ("baseline/positive", "baseline/random")
    ]
    data = read_payload(*runs)
    assert all(item["gold"] is None and item["keys"] == [] for item in data["items"])
    assert {a["verdict"] for item in data["items"] for a in item["answers"]} == {OPEN}
    (board,) = make_boards(runs)
    assert board.judges
    assert board.leader is None
    assert board.best_baseline is None
    assert [row.label for row in board.rows] == sorted(row.label for row in board.rows)
    section = make_section(board)
    assert {line["editor"] for line in section.editors} == {"identity", "recolour"}
    page = Path("report.html").read_text(encoding="utf-8")
    assert "Judges, not ranked" in page
    assert "Best trivial baseline" not in page
    (other,) = make_boards([ask("mquest/qa")])
    assert not other.judges
    assert make_section(other).editors == ()


def test_the_random_baseline_is_the_expected_chance() -> None:
    run = ask("punmemecn/sentiment", "baseline/constant", limit=10)
    chance = run.baselines["baseline/random"]["accuracy"]
    assert chance.value == pytest.approx(1 / 9, abs=0.06)
    assert ask("punmemecn/sentiment", "baseline/constant", limit=10).baselines == run.baselines


def test_the_mean_of_draws() -> None:
    one = Score("f1", 0.25, 8, 0.0, 0.5, note="25")
    other = Score("f1", 0.75, 8, 0.5, 1.0, note="75")
    assert average([(one,)]) == (one,)
    assert average([(one,), (other,)]) == (Score("f1", 0.5, 8, 0.25, 0.75),)
    undefined = Score("f1", None, 8)
    assert average([(undefined,), (one,)])[0].value == 0.25
    assert average([(undefined,), (undefined,)])[0].value is None


def test_the_invalid_rate_counts_items_and_not_attempts() -> None:
    run = ask("mquest/qa", limit=3)
    lines = [json.loads(line) for line in (run.folder / "answers.jsonl").read_bytes().splitlines()]
    bad = {"status": "unparsed", "reply": {"text": "?"}, "value": None}
    again = [lines[0] | bad, lines[0] | {"attempt": 1}, *lines[1:]]
    failed = lines[2] | {"status": "failed", "attempt": 1}
    text = "".join(json.dumps(line) + "\n" for line in [*again, failed])
    (run.folder / "answers.jsonl").write_text(text, encoding="utf-8")
    counts = {"answered": 2, "refused": 0, "unparsed": 1, "failed": 0}
    write_scores(run.folder, replace(read_scores(run.folder), counts=counts))
    run = load_run(run.folder)
    (row,) = (row for row in make_boards([run])[0].rows if row.run is not None)
    # Three items, one of them without a valid answer at the end; five attempts do not matter.
    assert row.invalid_rate == pytest.approx(1 / 3)
    table = report(run, "t.csv").read_text(encoding="utf-8").splitlines()
    place = table[0].split(",").index("invalid_rate")
    assert float(table[1].split(",")[place]) == pytest.approx(1 / 3)
    place = table[0].split(",").index("memes")
    assert table[1].split(",")[place] == str(row.memes)
    assert row.memes == len({line.item.group for line in read_items(run.folder)})


def test_chats_read_as_chats_and_gold_is_highlighted(browser: Browser) -> None:
    read_payload(ask("punmemecn/chat", limit=3))
    with watch(browser) as watched:
        watched.page.goto(Path("report.html").resolve().as_uri())
        first = watched.page.locator("#list > li").first
        turns = first.locator("ol.chat li")
        assert turns.count() > 2
        assert first.locator("ol.chat li.other").count() >= 1
        assert "：" not in (turns.first.locator(".said").text_content() or "：")
        assert first.locator("li.gold").count() == 1
        watched.assert_quiet()


@pytest.mark.slow
def test_labels_stand_side_by_side_and_many_fields_are_folded(browser: Browser) -> None:
    read_payload(ask("punmemecn/sentiment", limit=1))
    with watch(browser) as watched:
        watched.page.goto(Path("report.html").resolve().as_uri())
        first = watched.page.locator("#list > li").first
        words = first.locator("ul.options.bare").first.locator("li")
        tops = {round(word.bounding_box()["y"]) for word in words.all()}  # type: ignore[index]
        assert (words.count(), len(tops)) == (3, 1)
    read_payload(ask("mer_bench/judge", limit=1))
    with watch(browser) as watched:
        watched.page.goto(Path("report.html").resolve().as_uri())
        folded = watched.page.locator("#list > li").first.locator("summary").first
        assert folded.inner_text() == "Fields of an answer (8)"
        watched.assert_quiet()
