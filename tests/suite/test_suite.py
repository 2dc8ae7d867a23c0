"""Many runs at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from itertools import pairwise
from pathlib import Path

import pytest

from memantics.core.errors import Rejected, Unavailable
from memantics.core.records import Reply, Request
from memantics.core.rundir import Scores, last_answers, read_answers, read_facts, read_items
from memantics.evaluation.run import Job, RunEnd, SuiteSettings, run_suite, score_here
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel, ScriptedReply
from tests.suite.conftest import Bench, Witness


def conduct(
    plan: list[Job], witness: Witness, cache: Cache | None = None, concurrency: int = 4
) -> list[RunEnd]:
    settings = SuiteSettings(AskSettings(concurrency=concurrency, watch_every=0.01))
    return asyncio.run(run_suite(plan, cache, settings, witness))


def said(request: Request) -> str:
    return str(request.messages[-1].parts[-1])


class Gauge(FakeModel):
    """Counts calls in flight; answers nobody before so many are waiting."""

    def __init__(self, name: str = "gauge", patience: int = 1) -> None:
        super().__init__(lambda _request: "B", name)
        self.in_flight = self.most = 0
        self._patience = patience
        self._enough = asyncio.Event()

    async def answer(self, request: Request) -> Reply:
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        if self.in_flight >= self._patience:
            self._enough.set()
        try:
            await asyncio.wait_for(self._enough.wait(), 30)
            await asyncio.sleep(0)
            return await super().answer(request)
        finally:
            self.in_flight -= 1


def test_runs_of_one_model_share_its_limit_and_reach_it(bench: Bench, witness: Witness) -> None:
    """Each run alone has too few items to reach the limit."""
    toys = [bench.make_toy(items=4, first=10_000 * n) for n in range(1, 7)]
    model, other = Gauge("one", 6), Gauge("two", 6)
    plan = bench.plan([f"{toy}/choice" for toy in toys], [model, other])
    results = conduct(plan, witness, concurrency=6)
    assert [result.job for result in results] == plan
    assert all(result.ended and result.ended.progress.answered == 4 for result in results)
    assert model.most == other.most == 6
    assert model.closed
    assert other.closed


def test_a_run_begins_after_those_it_needs_and_gets_their_answers(
    bench: Bench, witness: Witness
) -> None:
    toy = bench.make_toy(items=6)
    seen: list[str] = []

    def script(request: Request) -> str:
        seen.append(said(request))
        return "B" if request.form.fields[0].options else f"note on {request.form.question}"

    plan = bench.plan([f"{toy}/use"], [FakeModel(script)])
    note, use = plan
    results = conduct(plan, witness)
    assert all(result.ended is not None for result in results)
    assert witness.place("end", note) < witness.place("begin", use)
    assert all("note on item-13" in text for text in seen[6:])
    first = next(read_items(use.folder)).item
    assert first.form.context == {"note": "note on item-13000?"}


def test_failed_needs_make_items_wait_and_the_next_start_goes_on(
    bench: Bench, witness: Witness
) -> None:
    toy = bench.make_toy(items=6)
    broken = True

    def script(request: Request) -> ScriptedReply:
        if not request.form.fields[0].options:
            # Both notes on the second meme fail.
            if broken and said(request).strip() in ("item-13002?", "item-13003?"):
                return Rejected("no")
            return "a note"
        return "B"

    def start() -> tuple[list[Job], list[RunEnd]]:
        plan = bench.plan([f"{toy}/use"], [FakeModel(script)])
        return plan, conduct(plan, witness)

    plan, (note, use) = start()
    assert note.ended is not None
    assert note.ended.progress.failed == 2
    assert use.ended is not None
    assert (use.ended.waiting, use.ended.progress.answered) == (2, 4)
    assert read_facts(use.job.folder).finished == ""
    broken = False
    plan, (note, use) = start()
    assert use.ended is not None
    assert (use.ended.waiting, use.ended.progress.answered) == (0, 6)
    assert read_facts(use.job.folder).finished
    answers = Counter(answer.item for answer in read_answers(plan[1].folder))
    assert set(answers.values()) == {1}
    assert len(answers) == 6


def test_a_need_without_any_answer_leaves_all_waiting(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy(items=4)

    def script(request: Request) -> ScriptedReply:
        return "B" if request.form.fields[0].options else Rejected("no")

    plan = bench.plan([f"{toy}/use"], [FakeModel(script)])
    _, use = conduct(plan, witness)
    assert use.ended is not None
    assert (use.ended.waiting, use.ended.scores) == (4, None)
    assert not use.job.folder.exists()


def test_refused_notes_are_the_last_word(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy(items=4)

    def script(request: Request) -> ScriptedReply:
        return "B" if request.form.fields[0].options else Reply("", refusal="no")

    _, use = conduct(bench.plan([f"{toy}/use"], [FakeModel(script)]), witness)
    assert use.ended is not None
    assert (use.ended.waiting, use.ended.progress.answered) == (0, 4)
    assert all(not line.item.form.context for line in read_items(use.job.folder))


def test_settings_that_ask_the_same_are_paid_once(
    bench: Bench, witness: Witness, tmp_path: Path
) -> None:
    toy = bench.make_toy(items=10)
    model = FakeModel(lambda _request: "B", cacheable=True, seconds=0.001)
    plan = bench.plan([f"{toy}/choice"], [model], "count=all,some", "style=plain,loud")
    cache = Cache(tmp_path / "cache.sqlite")
    results = conduct(plan, witness, cache, concurrency=8)
    cache.close()
    assert len(results) == 4
    assert model.asked == 20
    begun = [name for event, name in witness.events if event == "begin"]
    ended = [name for event, name in witness.events if event == "end"]
    assert begun == ended


def test_a_model_that_is_not_there_stops_only_its_own_runs(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy()
    gone = FakeModel(lambda _request: Unavailable("nobody at home"), "gone")
    here = FakeModel(lambda _request: "B", "here")
    plan = bench.plan([f"{toy}/{task}" for task in ("choice", "note", "use")], [gone, here])
    results = conduct(plan, witness, concurrency=1)
    for result in results:
        assert result.broken is (result.job.model is gone)
        assert (result.error is None) is (result.job.model is here)
    assert gone.asked <= 3
    assert gone.closed


def test_a_captioner_that_is_not_there_stops_what_needs_it(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy()
    gone = FakeModel(lambda _request: Unavailable("nobody at home"), "gone")
    here = FakeModel(lambda _request: "B", "here")
    plan = bench.plan([f"{toy}/use", f"{toy}/choice"], [here], captioner=gone)
    ended = {result.job.facts.task: result for result in conduct(plan, witness)}
    assert isinstance(ended[f"{toy}/use"].error, Unavailable)
    assert ended[f"{toy}/choice"].ended is not None
    assert here.asked == 12


def test_a_folder_that_cannot_be_written_stops_one_run(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy()
    plan = bench.plan([f"{toy}/choice", f"{toy}/note"], [FakeModel(lambda _request: "B")])
    plan[0].folder.parent.mkdir(parents=True)
    plan[0].folder.write_text("in the way")
    first, second = conduct(plan, witness)
    assert "cannot be written" in str(first.error)
    assert second.ended is not None


def test_a_fault_of_ours_is_told_after_the_others(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy()
    plan = bench.plan([f"{toy}/choice", f"{toy}/note"], [FakeModel(lambda _request: "B")])

    async def score(job: Job) -> Scores:
        if job is plan[0]:
            raise ZeroDivisionError
        return await score_here(job)

    settings = SuiteSettings(AskSettings(concurrency=2), score=score)
    first, second = asyncio.run(run_suite(plan, None, settings, witness))
    assert isinstance(first.fault, ZeroDivisionError)
    assert second.ended is not None
    assert len(last_answers(first.job.folder)) == 12


def test_models_that_need_the_machine_for_themselves_wait_for_each_other(
    bench: Bench, witness: Witness
) -> None:
    toy = bench.make_toy()
    first, second, third = Gauge("first"), Gauge("second"), Gauge("captioner")
    plan = bench.plan([f"{toy}/use", f"{toy}/choice"], [first, second], captioner=third)
    alone = frozenset(model.name for model in (first, second, third))
    settings = SuiteSettings(AskSettings(concurrency=2), alone=alone)
    results = asyncio.run(run_suite(plan, None, settings, witness))
    assert all(result.ended is not None for result in results)
    names = {job.folder.name: job.facts.model for job in plan}
    order = list(dict.fromkeys(names[name] for _, name in witness.events))
    assert order == ["fake/captioner", "fake/first", "fake/second"]
    switches = [names[name] for _, name in witness.events]
    assert sum(a != b for a, b in pairwise(switches)) == 2


def test_stopping_lets_calls_in_flight_end(bench: Bench, witness: Witness) -> None:
    toy = bench.make_toy(items=40)
    model = FakeModel(lambda _request: "B", seconds=0.05)

    async def scenario() -> list[Job]:
        plan = bench.plan([f"{toy}/choice", f"{toy}/note"], [model])
        settings = SuiteSettings(AskSettings(concurrency=4, grace=10))
        task = asyncio.create_task(run_suite(plan, None, settings, witness))
        while model.asked < 10:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return plan

    plan = asyncio.run(scenario())
    written = sum(len(last_answers(job.folder)) for job in plan if job.folder.exists())
    assert written == model.asked < 80
    assert model.closed
