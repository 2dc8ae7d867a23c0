"""What a suite would send."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Literal

import pytest

from memantics.core.errors import Rejected
from memantics.core.records import Field, Form, Message, Request, Sampling
from memantics.evaluation.facts import Scope, Variation
from memantics.evaluation.planning import estimate
from memantics.evaluation.run import Job, SuiteSettings, run_suite
from memantics.models.cache import Cache
from memantics.models.client import count_image, count_reply, count_request, count_text
from memantics.models.engine import AskSettings
from memantics.models.fake import FakeModel, ScriptedReply
from tests.suite.conftest import Bench, Witness


def conduct(plan: list[Job], cache: Cache | None) -> None:
    asyncio.run(run_suite(plan, cache, SuiteSettings(AskSettings(concurrency=2)), Witness()))


def cached_model(name: str = "m") -> FakeModel:
    return FakeModel(lambda _request: "B", name, cacheable=True)


def test_calls_are_those_that_are_then_made(bench: Bench, tmp_path: Path) -> None:
    toy = bench.make_toy(items=10)
    model = cached_model()
    plan = bench.plan([toy], [model], "style=plain,loud")
    before = estimate(plan, None)
    assert not (bench.root / "runs").exists()
    assert sum(own.calls for own in before) == 40
    assert [one.guessed for one in before] == [job.facts.task == f"{toy}/use" for job in plan]
    conduct(plan, None)
    assert model.asked == 40
    after = estimate(plan, None)
    assert [(each.calls, each.done, each.guessed) for each in after] == [(0, 10, False)] * 4
    assert [own.items for own in before] == [own.items for own in after]


def test_what_is_in_the_cache_is_not_sent(bench: Bench, tmp_path: Path) -> None:
    toy = bench.make_toy(items=10)
    cache = Cache(tmp_path / "cache.sqlite")
    model, other = cached_model("one"), cached_model("two")
    conduct(bench.plan([f"{toy}/choice"], [model], scope=Scope(limit=4)), cache)
    plan = bench.plan([f"{toy}/choice"], [model, other])
    first, second = estimate(plan, cache)
    assert (first.cached, first.calls) == (4, 6)
    assert (second.cached, second.calls) == (0, 10)
    asked = model.asked
    conduct(plan, cache)
    assert model.asked - asked == first.calls
    cache.close()


def test_failed_items_are_asked_again_and_invalid_ones_up_to_the_policy(bench: Bench) -> None:
    toy = bench.make_toy(items=4)

    def script(request: Request) -> ScriptedReply:
        words = str(request.messages[-1].parts[-1])
        if "item-10000" in words:
            return Rejected("no") if "no letter" in words else "babble"
        return "babble" if "10001" in words else "B"

    variation = Variation(invalid="retry:3")
    plan = bench.plan([f"{toy}/choice"], [FakeModel(script)], variation=variation)
    assert [(one.calls, one.most_calls) for one in estimate(plan, None)] == [(4, 12)]
    conduct(plan, None)
    # One item used its first attempt up, then its call failed: two are left.
    (own,) = estimate(plan, None)
    assert (own.calls, own.most_calls, own.done) == (1, 2, 3)


def test_only_language_models_cost(bench: Bench) -> None:
    toy = bench.make_toy()
    plan = bench.plan([f"{toy}/choice"], [cached_model(), FakeModel(lambda _request: "B", "free")])
    paid, free = estimate(plan, None)
    assert paid.cost((1.0, 2.0)) == pytest.approx(
        (paid.tokens_in + 2 * paid.tokens_out) / 1_000_000
    )
    assert free.cost((1.0, 2.0)) == 0
    assert paid.tokens_in > 0


@pytest.mark.parametrize(
    ("size", "tokens"),
    [
        ((1, 1), 255),
        ((512, 512), 255),
        ((513, 512), 425),
        ((768, 768), 765),
        ((5000, 5000), 765),  # scaled to 768 x 768: four tiles
        ((2048, 4096), 1105),  # scaled to 768 x 1536: six tiles
        ((20000, 10), 765),  # scaled to 2048 x 1: four tiles
    ],
)
def test_tiles(size: tuple[int, int], tokens: int) -> None:
    assert count_image(*size) == tokens


def test_texts_and_replies() -> None:
    fields = (Field("a", "integer"), Field("b", "text"))
    request = Request(
        (Message("system", ("12345678",)), Message("user", ("双关", "abcd"))),
        Form("", fields, reply="json"),
    )
    assert count_request(request) == 2 + 2 + 1 + 8
    assert count_reply(request) == 60
    assert count_reply(Request((), Form("", fields[1:], reply="text"), Sampling(None, 10))) == 10


@pytest.mark.parametrize(
    ("reply", "fields", "most", "tokens"),
    [
        ("json", 1, None, 30),
        ("json", 3, None, 90),
        ("json", 3, 89, 89),
        ("text", 3, None, 60),
        ("text", 1, 60, 60),
        ("key", 1, None, 60),
        ("key", 1, 59, 59),
        ("key", 1, 61, 60),
    ],
)
def test_replies_by_their_form(
    reply: Literal["key", "text", "json"], fields: int, most: int | None, tokens: int
) -> None:
    form = Form("", tuple(Field(f"f{n}", "text") for n in range(fields)), reply=reply)
    assert count_reply(Request((), form, Sampling(max_tokens=most))) == tokens


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("a", 1), ("abcd", 1), ("abcde", 2), ("双a", 2), ("\u2e80", 1), ("\uffef", 1), ("\u2e7f", 1)],
)
def test_texts(text: str, tokens: int) -> None:
    assert count_text(text) == tokens
    assert count_text("\u2e80" * 5) == count_text("\uffef" * 5) == 5
    assert count_text("\u2e7f" * 5) == count_text("\ufff0" * 5) == 2


def test_an_estimate_as_plain_data(bench: Bench) -> None:
    toy = bench.make_toy(items=3)
    (found,) = estimate(bench.plan([f"{toy}/choice"], [cached_model()]), None)
    dumped = found.dump((1.0, 2.0))
    assert dumped["cost"] == found.cost((1.0, 2.0))
    assert found.dump(None)["cost"] is None
    facts = {"task": f"{toy}/choice", "model": "fake/m", "folder": found.job.folder}
    counts = {"items": 3, "done": 0, "cached": 0, "calls": 3, "most_calls": 3, "images": 0}
    assert facts.items() | counts.items() <= dumped.items()
    assert dumped["options"] == found.job.facts.options
    assert (dumped["guessed"], dumped["tokens_out"]) == (False, 180)
    # "item-10000?" is three tokens, and what is empty before it one more with the message's four.
    assert dumped["tokens_in"] == 3 * count_request(
        Request((Message("user", (" item-10000?",)),), Form("", ()))
    )
