"""Figures of large runs come from other processes and are the same."""

from __future__ import annotations

import asyncio
import io
from pathlib import Path

import orjson

from memantics.core.rundir import Scores, read_scores
from memantics.evaluation.run import Job, RunEnd, SuiteSettings, run_suite, score_here
from memantics.evaluation.score_processes import ScoringOrder, ScoringPool, work
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel
from tests.suite.conftest import Bench, Witness


def conduct(bench: Bench, names: list[str], models: list[FakeModel]) -> list[RunEnd]:
    plan = bench.plan(names, models)
    settings = SuiteSettings(AskSettings(concurrency=8))
    return asyncio.run(run_suite(plan, None, settings, Witness()))


def models() -> list[FakeModel]:
    """One that is always right, one that never is."""
    return [FakeModel(lambda _request: "B", "right"), FakeModel(lambda _request: "A", "wrong")]


async def score_all(jobs: list[Job]) -> list[Scores]:
    client = ScoringPool()
    try:
        return await asyncio.gather(*map(client.score, jobs))
    finally:
        await client.close()


def test_another_process_finds_the_same(bench: Bench) -> None:
    toy = bench.make_toy(items=240)
    jobs = [result.job for result in conduct(bench, [f"{toy}/choice"], models())]
    here = [asyncio.run(score_here(job)) for job in jobs]
    for job in jobs:
        (job.folder / "scores.json").unlink()
    apart = asyncio.run(score_all(jobs))
    assert apart == here
    assert [read_scores(job.folder) for job in jobs] == here
    assert [one.scores[0].value for one in here] == [1.0, 0.0]
    assert here[0].baselines[0].model == "baseline/constant"


def test_small_runs_share_baselines_too(bench: Bench) -> None:
    toy = bench.make_toy(items=8)
    jobs = [result.job for result in conduct(bench, [f"{toy}/choice"], models())]
    here = [asyncio.run(score_here(job)) for job in jobs]
    assert asyncio.run(score_all(jobs)) == here
    assert [read_scores(job.folder) for job in jobs] == here


def test_what_the_other_process_cannot_do_is_done_here(bench: Bench, tmp_path: Path) -> None:
    """The other process knows no such task: its benchmark has gone from its folder."""
    toy = bench.make_toy(items=240)
    [job] = [result.job for result in conduct(bench, [f"{toy}/choice"], models()[:1])]
    (tmp_path / "toys" / toy / "card.toml").rename(tmp_path / "card.toml")
    [scores] = asyncio.run(score_all([job]))
    assert scores.counts["answered"] == 240


def test_the_worker_goes_on_after_a_run_it_cannot_score(bench: Bench, tmp_path: Path) -> None:
    toy = bench.make_toy(items=4)
    [job] = [result.job for result in conduct(bench, [f"{toy}/choice"], models()[:1])]
    orders = [
        ScoringOrder(str(tmp_path / "nowhere"), "wrong", True),
        ScoringOrder(str(job.folder), "wrong", False),
    ]
    answers = io.BytesIO()
    work(io.BytesIO(b"".join(orjson.dumps(order) + b"\n" for order in orders)), answers)
    assert answers.getvalue() == b"false\ntrue\n"
    assert read_scores(job.folder).baselines == ()
