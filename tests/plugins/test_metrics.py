"""Metrics of other packages: named, computed with intervals, stored, shown, computed again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.records import Field, Form, Item, Option, Outcome
from memantics.core.rundir import read_scores
from memantics.evaluation.metrics import (
    ACCURACY,
    BALANCED_ACCURACY,
    COHEN_KAPPA,
    EXACT_MATCH,
    MACRO_F1,
    ROUGE_L,
    Metric,
    PredictedAnswer,
    apply_metrics,
    find_answer_kind,
)
from tests.commands import Shell
from tests.plugins.conftest import Install

LETTERS = Form("Which?", (Field("answer", "choice", (Option("A", "a"), Option("B", "b"))),))
RUN = ("run", "mquest/qa", "--model", "baseline/longest", "--limit", "12")
MODULE = """
from memantics.plugins import Metric

ONE = Metric("one", "always 1", lambda rows: 1)
FIXED = Metric("fixed", "proportion of A", lambda rows: sum(r.predicted == "A" for r in rows)
               / len(rows), resamples=0)
RAISES = Metric("raises", "divides by zero", lambda rows: 1 / 0)
SILENT = Metric("silent", "undefined", lambda rows: None)
ENDLESS = Metric("endless", "not a number", lambda rows: float("nan"))
WORDY = Metric("wordy", "a text", lambda rows: "much")
OTHER = Metric("other", "of another task", lambda rows: 0.5, tasks=("toxicn_mm/*",))
TEXTS = Metric("texts", "of texts", lambda rows: 0.5, answers=frozenset({"text"}))
ACCURATE = Metric("reasoning_accuracy", "a name that the task has", lambda rows: 0.5)
BAD = lambda: Metric("bad", "kinds that do not exist", len, answers=frozenset({"song"}))
"""
NAMES = ("one", "fixed", "raises", "silent", "endless", "wordy", "other", "texts")


@pytest.fixture
def rates(install: Install) -> Path:
    points = {name: f"rates:{name.upper()}" for name in NAMES}
    more = {"reasoning_accuracy": "rates:ACCURATE", "renamed": "rates:ONE", "gone": "gone_rates:X"}
    site = install("rates", {"memantics.metrics": points | more})
    (site / "rates.py").write_text(MODULE, encoding="utf-8")
    return site


def find_run(shell: Shell) -> Path:
    (run,) = (shell.folder / "runs").iterdir()
    return run


def find_score(run: Path, name: str) -> Any:
    return next(s for s in read_scores(run).scores if s.key == name and not s.by)


@pytest.mark.usefixtures("says")
def test_the_metric_of_the_example_is_computed_stored_and_shown(shell: Shell) -> None:
    ran = shell.done(
        "run", "mquest/qa", "--model", "says/A", "--limit", "8", "--metric", "constancy"
    )
    assert "constancy: says/A 1.000 (95 % CI " in ran
    run = find_run(shell)
    scores = read_scores(run)
    assert scores.metrics == ("constancy",)
    score = find_score(run, "constancy")
    assert (score.value, score.n) == (1.0, 8)
    # Every resample has the same value; the metric states its bounds, so there is an interval.
    assert score.interval is not None
    assert 0.0 < score.interval[0] < score.interval[1] == 1.0
    assert score.note == "proportion of valid answers that are the most frequent one"
    trivial = {row.model: {s.key: s for s in row.scores} for row in scores.baselines}
    assert trivial["baseline/majority"]["constancy"].value == 1.0
    assert 0.25 < (trivial["baseline/random"]["constancy"].value or 0) < 1
    assert trivial["baseline/random"]["constancy"].interval is None
    assert "| constancy | all | 8 | " in shell.done("report", run, "--format", "md")
    assert "<bdi>constancy</bdi>" in (mm.report(run, shell.folder / "r.html")).read_text("utf-8")


@pytest.mark.usefixtures("rates")
def test_scoring_again_asks_no_model_and_keeps_the_metrics(shell: Shell) -> None:
    shell.done(*RUN, "--metric", "one", "--metric", "fixed")
    run = find_run(shell)
    before, answers = read_scores(run), (run / "answers.jsonl").read_bytes()
    shell.done("score", run)
    assert read_scores(run) == before
    shell.done(*RUN)  # nothing is left to ask; the metrics stay
    assert read_scores(run) == before
    assert (run / "answers.jsonl").read_bytes() == answers
    shell.done("score", run, "--metric", "fixed")
    assert read_scores(run).metrics == ("fixed",)
    shell.done("score", run, "--metric", "none")
    assert read_scores(run).metrics == ()
    assert not any(score.key in ("one", "fixed") for score in read_scores(run).scores)


@pytest.mark.usefixtures("rates")
def test_python_names_metrics_too(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.folder)
    settings = mm.EvaluationSettings(limit=12, metrics=["cohen_kappa"])
    run = mm.evaluate("mquest/qa", "baseline/longest", settings=settings)
    assert run.scores["cohen_kappa"].interval is not None
    run = mm.score(run, metrics=["fixed"])
    assert 0 < (run.scores["fixed"].value or 0) < 1
    assert run.scores["fixed"].interval is None  # resamples=0
    assert "cohen_kappa" not in run.scores
    assert mm.score(run, metrics=[]).results.metrics == ()


@pytest.mark.slow
@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("onne", "unknown metric 'onne'; did you mean one?"),
        ("gone", "plug-in 'gone' (gone_rates:X of rates 1.0) cannot be loaded: ModuleNotFound"),
        ("renamed", "entry point 'renamed' holds a metric 'one'"),
        ("other", "metric 'other' works with toxicn_mm/*, not with mquest/qa"),
        ("texts", "metric 'texts' needs text answers, but mquest/qa asks for choice"),
        ("reasoning_accuracy", "mquest/qa already computes 'reasoning_accuracy'"),
    ],
)
def test_what_cannot_be_used_is_refused_before_a_model_is_asked(
    shell: Shell, name: str, reason: str
) -> None:
    assert reason in shell.refused(*RUN, "--metric", name)
    assert not (shell.folder / "runs").exists()
    shell.done(*RUN)
    before = read_scores(find_run(shell))
    assert reason in shell.refused("score", find_run(shell), "--metric", name)
    assert read_scores(find_run(shell)) == before


@pytest.mark.usefixtures("rates")
@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("raises", "metric 'raises' failed: ZeroDivisionError: division by zero; correct"),
        ("endless", "metric 'endless' returned nan, not a finite number or None"),
        ("wordy", "metric 'wordy' returned 'much', not a finite number or None"),
    ],
)
def test_a_metric_that_fails_is_one_line_and_loses_nothing(
    shell: Shell, name: str, reason: str
) -> None:
    refused = shell.refused(*RUN, "--metric", "one", "--metric", name)
    assert reason in refused
    run = find_run(shell)
    assert read_scores(run).metrics == ("one",)
    assert find_score(run, "accuracy").value is not None
    assert reason in shell.refused("score", run, "--metric", name)
    shell.done("score", run)


@pytest.mark.usefixtures("rates")
def test_an_undefined_metric_has_no_value_and_no_interval(shell: Shell) -> None:
    assert "silent: baseline/longest –\n" in shell.done(*RUN, "--metric", "silent")
    score = find_score(find_run(shell), "silent")
    assert (score.value, score.interval, score.n) == (None, None, 12)
    found = json.loads(shell.done("score", find_run(shell), "--json"))
    assert found[0]["scores"]["metrics"] == ["silent"]


@pytest.mark.usefixtures("rates")
def test_of_several_tasks_those_are_left_out_to_which_a_metric_does_not_apply(
    shell: Shell,
) -> None:
    shell.done(*RUN, "punmemecn/ocr", "--metric", "texts")
    scored = {run.name: read_scores(run).metrics for run in (shell.folder / "runs").iterdir()}
    assert {name[:9]: metrics for name, metrics in scored.items()} == {
        "mquest-qa": (),
        "punmemecn": ("texts",),
    }
    refused = shell.refused(*RUN, "punmemecn/ocr", "--metric", "other")
    assert "not with mquest/qa (nor with 1 other tasks)" in refused


def test_a_metric_that_was_uninstalled_is_named(shell: Shell, rates: Path) -> None:
    shell.done(*RUN, "--metric", "one")
    (rates / "rates-1.0.dist-info" / "entry_points.txt").write_text("", encoding="utf-8")
    run = find_run(shell)
    for words in (("score", run), RUN):
        refused = shell.refused(*words)
        assert "was last scored with metric 'one', which is not installed" in refused
    shell.done("score", run, "--metric", "none")


@pytest.mark.usefixtures("rates")
def test_a_large_run_is_scored_in_another_process_with_its_metrics(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("memantics.evaluation.score_processes._SMALL", 0)

    async def refuse(job: object) -> None:
        raise AssertionError("scored here")

    monkeypatch.setattr("memantics.evaluation.score_processes.score_here", refuse)
    shell.done(*RUN, "--model", "baseline/majority", "--metric", "one")
    for run in (shell.folder / "runs").iterdir():
        scores = read_scores(run)
        assert scores.metrics == ("one",)
        assert all(any(s.key == "one" for s in row.scores) for row in scores.baselines)


def test_metrics_are_checked_when_they_are_made() -> None:
    for wrong in ({"name": ""}, {"name": "none"}, {"name": "a\nb"}, {"resamples": -1}):
        with pytest.raises(InputError, match=r"is not a valid metric name|must be 0 or more"):
            Metric(**({"name": "x", "what": "", "compute": len} | wrong))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="answers must be among boolean, choice"):
        Metric("x", "", len, answers=frozenset({"song"}))  # type: ignore[arg-type]
    with pytest.raises(InputError, match="answers must be among"):
        Metric("x", "", len, answers=frozenset())


def make_outcomes(pairs: Sequence[tuple[str, str | None]], memes: Sequence[str]) -> list[Outcome]:
    return [
        Outcome(Item(str(place), meme, gold, LETTERS), "answered" if said else "refused", said)
        for place, ((gold, said), meme) in enumerate(zip(pairs, memes, strict=True))
    ]


def test_intervals_resample_memes_and_one_meme_has_none() -> None:
    pairs = [("A", "A"), ("A", "B")] * 20
    apart = make_outcomes(pairs, [str(n) for n in range(40)])
    # Both questions about a meme are right, or both are wrong: half as many independent items.
    together = make_outcomes(sorted(pairs), [str(n // 2) for n in range(40)])
    (free,), failure = apply_metrics([ACCURACY], apart)
    (bound,), _ = apply_metrics([ACCURACY], together)
    assert failure is None
    assert free.value == bound.value == 0.5
    assert free.interval is not None
    assert bound.interval is not None
    widths = [high - low for low, high in (free.interval, bound.interval)]
    assert widths[1] > 1.25 * widths[0]
    (alone,), _ = apply_metrics([ACCURACY], make_outcomes(pairs, ["m"] * 40))
    assert (alone.value, alone.interval) == (0.5, None)
    (bare,), _ = apply_metrics([ACCURACY], apart, intervals=False)
    assert bare.interval is None
    (none,), _ = apply_metrics([Metric("x", "", lambda rows: 1 / len(rows))], [])
    assert (none.value, none.n) == (None, 0)


def test_metrics_see_gold_prediction_and_meme() -> None:
    seen: list[PredictedAnswer] = []

    def note(rows: Sequence[PredictedAnswer]) -> None:
        seen.extend(rows)

    apply_metrics([Metric("x", "", note)], make_outcomes([("A", "B"), ("A", None)], ["m", "n"]))
    assert seen == [PredictedAnswer("A", "B", "m"), PredictedAnswer("A", None, "n")]


ROWS = [
    PredictedAnswer(gold, said, str(place))
    for place, (gold, said) in enumerate([("A", "A"), ("A", "B"), ("B", "B"), ("B", None)])
]


def test_the_built_in_metrics_by_hand() -> None:
    assert ACCURACY.compute(ROWS) == 0.5
    assert BALANCED_ACCURACY.compute([*ROWS, PredictedAnswer("A", "A", "x")]) == pytest.approx(
        7 / 12
    )
    # A: precision 1, recall 1/2; B: precision 1/2, recall 1/2.
    assert MACRO_F1.compute(ROWS) == pytest.approx((2 / 3 + 1 / 2) / 2)
    assert MACRO_F1.compute([PredictedAnswer("A", "C", "x")]) == 0.0
    # Expected by chance: A 2/4 · 1/4, B 2/4 · 2/4.
    assert COHEN_KAPPA.compute(ROWS) == pytest.approx((0.5 - 0.375) / (1 - 0.375))
    texts = [PredictedAnswer(["a cat", "a dog"], "a dog", "m"), PredictedAnswer("a cat", None, "n")]
    assert EXACT_MATCH.compute(texts) == 0.5
    assert ROUGE_L.compute(texts) == 0.5
    assert ROUGE_L.compute([PredictedAnswer(["one two"], "one three", "m")]) == pytest.approx(0.5)


def test_the_kind_of_an_answer() -> None:
    text, number = Field("why", "text"), Field("mark", "integer", low=1, high=5)
    choice = LETTERS.fields[0]

    def kind(gold: Any, *fields: Field, reply: Any = "key") -> str:
        return find_answer_kind(Item("1", "m", gold, Form("?", fields, reply=reply)))

    assert kind("A", choice) == "choice"
    assert kind(3, number) == "integer"
    assert kind("A", text, choice, reply="json") == "choice"
    assert kind({"mark": 3, "answer": "A"}, number, choice, reply="json") == "record"
    assert kind(["a text"], text, reply="text") == kind("a text") == "text"


def test_metrics_are_listed_and_a_broken_one_says_why(shell: Shell, rates: Path) -> None:
    listed = {row["name"]: row for row in json.loads(shell.done("metrics", "list", "--json"))}
    assert list(listed)[:2] == ["accuracy", "balanced_accuracy"]
    assert {*NAMES, "cohen_kappa", "exact_match", "macro_f1", "rouge_l"} < set(listed)
    assert listed["rouge_l"] == {
        "name": "rouge_l",
        "what": "mean ROUGE-L F1 with the best reference, without stemming",
        "answers": ["text"],
        "tasks": [],
        "source": "built-in",
    }
    assert listed["other"]["tasks"] == ["toxicn_mm/*"]
    assert {row["source"] for row in listed.values()} == {"built-in", "installed"}
    assert "gone_rates:X of rates 1.0) cannot be loaded" in listed["gone"]["what"]
    table = shell.done("metrics", "list")
    assert table.split()[:5] == ["name", "what", "answers", "tasks", "source"]
    assert "toxicn_mm/*" in table
