from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import orjson
import pytest

from memantics.core.errors import DataError, Rejected, StoreError, Transient, Unavailable
from memantics.core.model import Model
from memantics.core.records import NO_REPLY, Answer, Form, Item, Reply, Request
from memantics.core.rundir import RunWriter, last_answers, read_answers, read_items
from memantics.core.task import Task
from memantics.evaluation.ask import ask
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Progress, RetrySettings
from memantics.models.fake import FakeModel, ScriptedReply, open_fake, play
from memantics.models.recorded import RecordedModel
from tests.engine.toy import FakeClock, draw_image, facts, toy_task


def run(
    folder: Path, task: Task, model: Model, cache: Path | None = None, **settings: object
) -> Progress:
    async def scenario() -> Progress:
        store = Cache(cache) if cache else None
        try:
            with RunWriter(folder, facts()) as writer:
                given = AskSettings(**{"clock": FakeClock(), "concurrency": 4, **settings})  # type: ignore[arg-type]
                return await ask(task, model, writer, store, given)
        finally:
            if store:
                store.close()

    return asyncio.run(scenario())


def by_item(request: Request) -> int:
    return int(request.form.question.split("item-")[1].split("?")[0])


def test_every_item_gets_its_line_and_its_answer(tmp_path: Path) -> None:
    summary = run(tmp_path, toy_task(20), FakeModel(lambda _: Reply("B", tokens_in=3)))
    assert (summary.done, summary.answered, summary.calls) == (20, 20, 20)
    assert summary.tokens_in == 60
    assert [line.item.id for line in read_items(tmp_path)] == [f"item-{n}" for n in range(20)]
    answers = list(read_answers(tmp_path))
    assert {a.value for a in answers} == {"B"}
    assert all(len(a.prompt) == 64 for a in answers)
    assert len({a.prompt for a in answers}) == 20


def test_the_four_statuses(tmp_path: Path) -> None:
    lines: dict[int, ScriptedReply] = {
        0: "B",
        1: "hm",
        2: Reply("", refusal="no"),
        3: Rejected("HTTP 400: too long"),
    }
    model = FakeModel(lambda request: lines[by_item(request)])
    summary = run(tmp_path, toy_task(4), model)
    assert summary.counts == {"answered": 1, "refused": 1, "unparsed": 1, "failed": 1}
    last = last_answers(tmp_path)
    assert last["item-3"].reply.text == ""
    assert last["item-3"].reason == "HTTP 400: too long"
    assert last["item-1"].reply.text == "hm"


def test_invalid_answers_are_asked_again_with_the_complaint(tmp_path: Path) -> None:
    asked: list[tuple[str, int | None]] = []

    def script(request: Request) -> ScriptedReply:
        asked.append((str(request.messages[0].parts[-1]), request.sampling.seed))
        lines: list[ScriptedReply] = ["hm", Reply("", refusal="no"), "C"]
        return lines[len(asked) - 1]

    cache = tmp_path / "cache.sqlite"
    task = toy_task(1, invalid="retry:5", seed=7)
    summary = run(tmp_path / "run", task, FakeModel(script, cacheable=True), cache)
    assert (summary.answered, summary.calls) == (1, 3)
    assert [seed for _, seed in asked] == [7, 8, 9]
    assert "did not count" not in asked[0][0]
    assert "did not count: no letter" in asked[1][0]
    assert [a.status for a in read_answers(tmp_path / "run")] == ["unparsed", "refused", "answered"]
    again = FakeModel(lambda _: "D", cacheable=True)
    summary = run(tmp_path / "again", task, again, cache)
    assert again.asked == 0
    assert (summary.cached, summary.calls, summary.tokens_in) == (3, 0, 0)
    assert last_answers(tmp_path / "again")["item-0"].value == "C"


def test_asking_again_never_replays_the_bad_answer(tmp_path: Path) -> None:
    cache = tmp_path / "cache.sqlite"
    task = toy_task(1, invalid="retry:3")
    # The same request each time: only the attempt number tells them apart.
    ask_first = task.ask
    task = replace(task, ask=lambda item, _: ask_first(item, None))
    first = FakeModel(play(["hm", "hm hm", "B"]), cacheable=True)
    assert run(tmp_path / "first", task, first, cache).calls == 3
    second = FakeModel(play(["D"]), cacheable=True)
    assert run(tmp_path / "second", task, second, cache).cached == 3
    assert [a.reply.text for a in read_answers(tmp_path / "second")] == ["hm", "hm hm", "B"]


def test_attempts_end_at_the_policy(tmp_path: Path) -> None:
    summary = run(tmp_path, toy_task(2, invalid="retry:3"), open_fake("fake/babble"))
    assert (summary.unparsed, summary.calls) == (2, 6)
    again = open_fake("fake/babble")
    assert run(tmp_path, toy_task(2, invalid="retry:3"), again).resumed == 2
    assert again.asked == 0


def test_failed_items_and_unfinished_attempts_go_on(tmp_path: Path) -> None:
    task = toy_task(3, invalid="retry:4")
    with RunWriter(tmp_path, facts()) as writer:
        for item in task.items():
            writer.add_item(item, ())
        writer.add_answer(Answer("item-0", 0, "unparsed", NO_REPLY, reason="no letter"))
        writer.add_answer(Answer("item-1", 0, "unparsed", NO_REPLY, reason="was blank"))
        writer.add_answer(Answer("item-1", 1, "failed", NO_REPLY, reason="HTTP 500"))
        writer.add_answer(Answer("item-2", 0, "answered", NO_REPLY, value="B"))
    prompts: dict[int, str] = {}

    def script(request: Request) -> str:
        prompts[by_item(request)] = str(request.messages[0].parts[-1])
        return "B"

    summary = run(tmp_path, task, FakeModel(script))
    assert (summary.answered, summary.resumed, summary.calls) == (3, 1, 2)
    assert "no letter" in prompts[0]
    assert "was blank" in prompts[1]
    attempts = [(a.item, a.attempt, a.status) for a in read_answers(tmp_path)]
    assert attempts[-2:] == [("item-0", 1, "answered"), ("item-1", 1, "answered")]
    assert len(list(read_items(tmp_path))) == 3


def test_missing_images_fail_by_name_without_a_call(tmp_path: Path) -> None:
    model = FakeModel(lambda _: "B", cacheable=True)
    summary = run(tmp_path / "run", toy_task(2, tmp_path / "gone.png"), model)
    assert (summary.failed, summary.calls, model.asked) == (2, 0, 0)
    assert "gone.png: missing" in last_answers(tmp_path / "run")["item-0"].reason
    # A model in this process may not need the image at all.
    assert run(tmp_path / "b", toy_task(2, tmp_path / "gone.png"), open_fake("fake/keys")).answered


def test_wrong_key_ends_the_run_with_that_error(tmp_path: Path) -> None:
    def script(request: Request) -> ScriptedReply:
        return Unavailable("HTTP 401", hint="check the key") if by_item(request) == 5 else "B"

    with pytest.raises(Unavailable, match="HTTP 401; check the key"):
        run(tmp_path, toy_task(1000), FakeModel(script))
    finished = list(read_answers(tmp_path))
    assert {a.status for a in finished} == {"answered"}
    assert len(finished) < 20
    assert run(tmp_path, toy_task(1000), FakeModel(lambda _: "B")).answered == 1000


def test_broken_data_ends_the_run_with_that_error(tmp_path: Path) -> None:
    def items() -> Iterator[Item]:
        yield from toy_task(3).items()
        raise DataError("index.json", "label 9", row=3)

    with pytest.raises(DataError, match="row 3"):
        run(tmp_path, replace(toy_task(0), items=items), open_fake("fake/keys"))
    assert len(last_answers(tmp_path)) == 3


def test_two_items_of_one_id_are_refused(tmp_path: Path) -> None:
    task = toy_task(2)
    double = replace(task, items=lambda: iter([*task.items(), *task.items()]))
    with pytest.raises(DataError, match="two items have the same id"):
        run(tmp_path, double, open_fake("fake/keys"))
    assert len(list(read_answers(tmp_path))) == 2


def test_transient_errors_are_retried_and_counted(tmp_path: Path) -> None:
    tries: Counter[int] = Counter()

    def script(request: Request) -> ScriptedReply:
        number = by_item(request)
        tries[number] += 1
        return Transient("HTTP 500") if number % 2 and tries[number] < 3 else "B"

    summary = run(tmp_path, toy_task(10), FakeModel(script))
    assert (summary.answered, summary.calls, summary.retries) == (10, 20, 10)
    assert sorted(a.calls for a in read_answers(tmp_path)) == [1] * 5 + [3] * 5


def test_a_failed_call_is_failed_never_text(tmp_path: Path) -> None:
    summary = run(
        tmp_path,
        toy_task(3),
        open_fake("fake/break"),
        retries=RetrySettings(per_call=1),
        rng=random.Random(1),
    )
    assert summary.failed == 3
    for answer in read_answers(tmp_path):
        assert (answer.reply.text, answer.value) == ("", None)
        assert answer.reason == "the fake model simulates a failure; given up after 2 tries"


def test_strange_answers_never_end_the_run(tmp_path: Path) -> None:
    def parse(text: str, form: Form) -> int:
        return int(text)

    model = FakeModel(play(["9" * 40, "x", "\ud83d", "7"]))
    summary = run(tmp_path, replace(toy_task(4), parse=parse), model, concurrency=1)
    assert (summary.answered, summary.unparsed) == (1, 3)
    reasons = [a.reason for a in read_answers(tmp_path)]
    assert "cannot be written as JSON" in reasons[0]
    assert "the parser failed: ValueError" in reasons[1]


def test_an_answer_cut_at_the_limit_says_so(tmp_path: Path) -> None:
    run(tmp_path, toy_task(1), FakeModel(lambda _: Reply("The ans", finish="length")))
    assert "cut at the token limit" in last_answers(tmp_path)["item-0"].reason


def test_a_torn_line_is_dropped_and_its_item_asked_again(tmp_path: Path) -> None:
    run(tmp_path, toy_task(5), open_fake("fake/keys"))
    answers = tmp_path / "answers.jsonl"
    answers.write_bytes(answers.read_bytes()[:-20])
    items = tmp_path / "items.jsonl"
    items.write_bytes(items.read_bytes()[:-20])
    model = open_fake("fake/keys")
    summary = run(tmp_path, toy_task(5), model)
    assert (summary.answered, summary.resumed, model.asked) == (5, 4, 1)
    assert sorted(a.item for a in read_answers(tmp_path)) == [f"item-{n}" for n in range(5)]
    assert len(list(read_items(tmp_path))) == 5


def test_items_are_taken_as_they_are_needed(tmp_path: Path) -> None:
    taken = 0

    def items() -> Iterator[Item]:
        nonlocal taken
        for item in toy_task(200).items():
            taken += 1
            yield item

    ahead: list[int] = []
    asked = 0

    def script(request: Request) -> str:
        nonlocal asked
        asked += 1
        ahead.append(taken - asked)
        return "B"

    run(tmp_path, replace(toy_task(0), items=items), FakeModel(script, seconds=0.0001))
    assert max(ahead) <= 4


def test_cancelling_keeps_what_was_answered(tmp_path: Path) -> None:
    async def scenario() -> list[Progress]:
        seen: list[Progress] = []
        model = FakeModel(lambda _: "B", seconds=0.02)
        with RunWriter(tmp_path, facts()) as writer:
            settings = AskSettings(concurrency=4, grace=5)
            running = asyncio.create_task(
                ask(toy_task(1000), model, writer, None, settings, seen.append)
            )
            while model.asked < 10:
                await asyncio.sleep(0.005)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running
        assert model.asked == len(list(read_answers(tmp_path)))
        return seen

    last = asyncio.run(scenario())[-1]
    assert 10 <= last.answered < 1000
    assert last.in_flight == 0


def test_a_slow_call_does_not_hold_up_the_end(tmp_path: Path) -> None:
    async def scenario() -> None:
        model = FakeModel(lambda _: "B", seconds=3600)
        with RunWriter(tmp_path, facts()) as writer:
            settings = AskSettings(concurrency=4, grace=0.05)
            running = asyncio.create_task(ask(toy_task(10), model, writer, None, settings))
            await asyncio.sleep(0.05)
            running.cancel()
            with pytest.raises(asyncio.CancelledError):
                await running

    asyncio.run(scenario())
    assert list(read_answers(tmp_path)) == []


def test_one_folder_one_run(tmp_path: Path) -> None:
    with RunWriter(tmp_path, facts()), pytest.raises(StoreError, match="another process"):
        RunWriter(tmp_path, facts())
    with pytest.raises(StoreError, match="contains another run"):
        RunWriter(tmp_path, facts("other"))
    # /proc takes no folders from anybody, root included.
    with pytest.raises(StoreError, match="cannot be written"):
        RunWriter(Path("/proc/memantics"), facts())


def test_watchers_see_the_run(tmp_path: Path) -> None:
    async def scenario() -> list[Progress]:
        seen: list[Progress] = []
        with RunWriter(tmp_path, facts()) as writer:
            settings = AskSettings(concurrency=2, total=30, watch_every=0.01)
            model = FakeModel(lambda _: "B", seconds=0.005)
            await ask(toy_task(30), model, writer, None, settings, seen.append)
        return seen

    seen = asyncio.run(scenario())
    assert len(seen) > 2
    assert [p.done for p in seen] == sorted(p.done for p in seen)
    assert (seen[-1].done, seen[-1].left) == (30, 0)


def test_a_run_can_be_replayed(tmp_path: Path) -> None:
    image = draw_image(tmp_path)
    task = toy_task(6, image, invalid="retry:2")
    lines: list[ScriptedReply] = ["hm", "A", Reply("", refusal="no"), "C", "D", "A", "B", "C"]
    run(tmp_path / "first", task, FakeModel(play(lines)), concurrency=1)
    model = RecordedModel(tmp_path / "first")
    summary = run(tmp_path / "second", task, model, concurrency=1)
    asyncio.run(model.close())
    assert summary.answered == 6

    def essence(folder: Path) -> list[tuple[object, ...]]:
        return [(a.item, a.attempt, a.status, a.value) for a in read_answers(tmp_path / folder)]

    assert essence(Path("first")) == essence(Path("second"))


WHOLE = Reply("B", "so", "", "stop", 9, 4, "toy-1", "no format", 3, {"A": 0.125, "B": 0.75})


def test_a_reply_is_replayed_whole(tmp_path: Path) -> None:
    run(tmp_path / "first", toy_task(1), FakeModel(lambda _: WHOLE))
    model = RecordedModel(tmp_path / "first")
    run(tmp_path / "second", toy_task(1), model)
    asyncio.run(model.close())
    for folder in ("first", "second"):
        assert last_answers(tmp_path / folder)["item-0"].reply == WHOLE


def test_a_recording_says_what_it_lacks(tmp_path: Path) -> None:
    run(tmp_path / "first", toy_task(2), open_fake("fake/keys"))
    model = RecordedModel(tmp_path / "first" / "answers.jsonl")
    summary = run(tmp_path / "second", toy_task(3), model)
    asyncio.run(model.close())
    assert (summary.answered, summary.failed) == (2, 1)
    assert (
        "contains no answer to this request" in last_answers(tmp_path / "second")["item-2"].reason
    )


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "contains no answers"), ("{]\n", "row 1: not valid JSON"), ('{"text": "B"}\n', "prompt")],
)
def test_bad_recordings_are_told(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "answers.jsonl"
    path.write_text(content)
    with pytest.raises(DataError, match=words):
        RecordedModel(path)
    with pytest.raises(DataError, match="cannot be read"):
        RecordedModel(tmp_path / "none.jsonl")


def test_answers_are_plain_json_lines(tmp_path: Path) -> None:
    run(tmp_path, toy_task(1), open_fake("fake/keys"))
    line = orjson.loads((tmp_path / "answers.jsonl").read_bytes())
    assert line["item"] == "item-0"
    assert line["status"] == "answered"
