"""Evaluating from Python: typed in, typed out, also inside a running event loop."""

from __future__ import annotations

import asyncio
import inspect
import json
import sys
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.core.errors import InputError, MissingExtra, UnknownName
from memantics.core.records import STATUSES
from memantics.evaluation.audit import audit
from memantics.evaluation.compare import compare
from memantics.evaluation.datasets import list_benchmarks, list_models, load_dataset
from memantics.evaluation.evaluate import (
    EvaluationSettings,
    evaluate,
    evaluate_async,
    evaluate_suite,
    score,
)
from memantics.evaluation.report import report
from memantics.evaluation.reports.runs import Run, load_run
from memantics.models.client import CallSettings
from memantics.models.engine import Progress
from memantics.models.progress import ProgressWish


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    return tmp_path


def ask(
    task: str, limit: int, model: str = "baseline/majority", progress: ProgressWish = None
) -> Run:
    return evaluate(task, model, settings=EvaluationSettings(limit=limit), progress=progress)


@pytest.mark.usefixtures("home")
def test_one_task_and_one_model_make_a_run() -> None:
    seen: list[Progress] = []
    run = ask("mquest/qa", limit=6, progress=seen.append)
    assert (run.task, run.model, run.folder.parent) == (
        "mquest/qa",
        "baseline/majority",
        Path("runs"),
    )
    accuracy = run.scores["accuracy"]
    assert accuracy.value is not None
    assert accuracy.interval is not None
    assert accuracy.interval[0] <= accuracy.value <= accuracy.interval[1]
    assert accuracy.n == 6
    assert dict(run.counts) == dict.fromkeys(STATUSES, 0) | {"answered": 6}
    assert run.errors == {}
    assert "baseline/random" in run.baselines
    assert seen[-1].done == seen[-1].total == 6
    assert load_run(run.folder) == run
    assert json.loads(json.dumps(run.to_dict()))["scores"]["accuracy"]["n"] == 6
    shown = run._repr_html_()
    assert "baseline/majority" in shown
    assert f"{accuracy.value:.3f}" in shown


@pytest.mark.usefixtures("home")
def test_several_make_runs_and_a_grid_makes_one_of_each() -> None:
    models = ["baseline/majority", "baseline/random"]
    runs = evaluate_suite("mquest/qa", models, settings=EvaluationSettings(limit=4, data="sample"))
    assert [run.model for run in runs] == models
    assert runs[0] in runs
    assert len(runs[:1]) == 1
    two_orders = EvaluationSettings(limit=4, options={"order": ["answer_first", "letter_only"]})
    grid = evaluate_suite("mquest/qa", models[0], settings=two_orders)
    assert [run.options["order"] for run in grid] == ["answer_first", "letter_only"]
    with pytest.raises(UnknownName, match="ordr"):
        evaluate("mquest/qa", models[0], settings=EvaluationSettings(options={"ordr": "x"}))
    with pytest.raises(InputError, match="cannot be combined"):
        evaluate("mquest/qa", models[0], settings=EvaluationSettings(limit=1, sample=1))
    for task, settings, runs_named in (
        ("mquest/qa", two_orders, 2),
        ("mquest/qa", EvaluationSettings(limit=4, repeat=3), 3),
        ("toxicn_mm", EvaluationSettings(limit=1), 3),
    ):
        with pytest.raises(InputError, match=rf"gives {runs_named} runs.*evaluate_suite"):
            evaluate(task, models[0], settings=settings, out="refused")
    with pytest.raises(InputError, match=r"one model.*evaluate_suite"):
        evaluate("mquest/qa", models)  # type: ignore[arg-type]
    assert not Path("refused").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_a_model_that_is_not_there_is_an_error_of_its_runs_alone() -> None:
    absent = CallSettings(base_url="http://127.0.0.1:9/v1", use_cache=False)
    settings = EvaluationSettings(limit=2)
    with pytest.raises(Exception, match=r"127\.0\.0\.1"):
        evaluate("mquest/qa", "openai/absent", settings=settings, calls=absent)
    models = ["openai/absent", "baseline/random"]
    both = evaluate_suite("mquest/qa", models, settings=settings, calls=absent)
    assert [run.model for run in both] == ["baseline/random"]
    ((name, why),) = both.broken.items()
    assert name == "mquest/qa openai/absent"
    assert "127.0.0.1" in why
    assert "127.0.0.1" in both._repr_html_()


@pytest.mark.usefixtures("home")
def test_it_works_inside_a_running_loop_and_as_a_coroutine(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    times = (f"2026-01-01T00:00:{n:02}Z" for n in range(60))
    monkeypatch.setattr("memantics.evaluation.run.now", lambda: next(times))

    async def cell() -> tuple[Run, Run]:
        first = evaluate("mquest/qa", "baseline/random", settings=EvaluationSettings(limit=2))
        return first, await evaluate_async(
            "mquest/qa", "baseline/random", settings=EvaluationSettings(limit=2)
        )

    first, second = asyncio.run(cell())
    assert first.facts.finished == "2026-01-01T00:00:00Z"
    assert first == second  # one that asked nothing more was finished before
    more = evaluate("mquest/qa", "baseline/random", settings=EvaluationSettings(limit=3))
    assert more.facts.finished > first.facts.finished
    assert inspect.signature(evaluate) == inspect.signature(evaluate_async)


@pytest.mark.usefixtures("home")
def test_a_bar_ends_full(capsys: pytest.CaptureFixture[str]) -> None:
    ask("mquest/qa", limit=3, progress="bar")
    last = capsys.readouterr().err.splitlines()[-1].rpartition("\r")[2]
    assert "3/3" in last
    assert "·" not in last


@pytest.mark.usefixtures("home")
def test_score_compare_and_report_take_runs_and_folders() -> None:
    one, other = ask("mquest/qa", limit=12), ask("mquest/qa", 12, "baseline/random")
    assert score(one.folder).scores == score(one).scores == one.scores
    found = compare(one, other.folder)
    assert found.shared == 12
    assert found.to_dict()["task"] == "mquest/qa"
    page = report([one, other], "report.html", images=False)
    assert "baseline/random" in page.read_text(encoding="utf-8")
    table = report(one, "table.csv").read_text(encoding="utf-8")
    assert table.startswith("task,data,split")


@pytest.mark.slow
@pytest.mark.usefixtures("home")
def test_an_audit_is_a_record_that_saves_itself() -> None:
    found = audit("mer_bench")
    assert sum(found.counts.values()) == len(found.findings)
    assert found.to_dict()["benchmark"] == "mer_bench"
    assert found.save("audit.html").read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.usefixtures("home")
def test_data_sets_are_typed_items(monkeypatch: pytest.MonkeyPatch) -> None:
    data = load_dataset("mquest")
    assert (data.task, data.data) == ("mquest/qa", "sample")
    assert data[0].id == data.items[0].id
    assert len(list(data)) == len(data) > 10
    assert load_dataset("punmemecn", task="sentiment")[0].gold is not None
    frame = data.to_pandas()
    assert list(frame["id"]) == [item.id for item in data]
    assert frame["options"][0] == [
        f"{own.key}. {own.text}" for own in data[0].form.fields[0].options
    ]
    with pytest.raises(UnknownName, match="split"):
        load_dataset("mquest", split="nowhere")
    for name in ("pandas", "datasets"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"memantics\[frames\]"):
        data.to_pandas()
    with pytest.raises(MissingExtra, match=r"memantics\[frames\]"):
        data.to_hf()


@pytest.mark.usefixtures("home")
def test_hugging_face_data_sets_hold_the_pictures() -> None:
    pytest.importorskip("datasets")
    made = load_dataset("mquest").to_hf()
    assert made[0]["image"].size[0] > 10


@pytest.mark.usefixtures("home")
def test_what_there_is() -> None:
    known = {own.name: own for own in list_benchmarks()}
    assert known["mquest"].tasks == ("mquest/qa",)
    assert known["mquest"].release is None
    assert "openai/" in {own.name.partition("/")[0] + "/" for own in list_models()}


@pytest.mark.usefixtures("home")
def test_runs_are_drawn_on_matplotlib_axes() -> None:
    models = ["baseline/majority", "baseline/random"]
    runs = evaluate_suite("mquest/qa", models, settings=EvaluationSettings(limit=4, data="sample"))
    matplotlib = pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    matplotlib.use("agg")
    axes = runs.plot()
    assert [tick.get_text() for tick in axes.get_yticklabels()] == [
        "baseline/random, mquest/qa",
        "baseline/majority, mquest/qa",
    ]
    assert axes.get_xlabel() == runs[0].results.main
    drawn = [float(line.get_xdata()[0]) for line in axes.lines[1::2]]
    assert drawn == [run.scores[run.results.main].value for run in reversed(runs)]
    assert runs.plot(axes) is axes


@pytest.mark.usefixtures("home")
def test_without_matplotlib_a_metric_names_what_is_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = evaluate_suite(
        "mquest/qa", ["baseline/majority", "baseline/random"], settings=EvaluationSettings(limit=2)
    )
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(InputError, match="pip install matplotlib"):
        runs.plot()


def test_call_settings_become_what_a_model_is_opened_with() -> None:
    plain = CallSettings().model_settings
    assert (plain.base_url, plain.concurrency, plain.timeout, plain.params) == (None, 32, 300.0, {})
    params: dict[str, JsonValue] = {
        "max_tokens": 9,
        "reasoning_effort": "low",
        "stop": ["a"],
        "logprobs": True,
    }
    made = CallSettings(base_url="http://h/v1", params=params, timeout=5.0).model_settings
    written = {"max_tokens": "9", "reasoning_effort": "low", "stop": '["a"]', "logprobs": "true"}
    assert (made.base_url, made.params, made.timeout) == ("http://h/v1", written, 5.0)
