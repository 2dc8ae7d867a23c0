"""Audits that ask a model: fakes whose vices are known must be found out."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from memantics.benchmarks.plugin import AuditHooks
from memantics.benchmarks.published import PublishedRow
from memantics.core.finding import Finding, Gap, Maker
from memantics.core.records import Field, Form, Image, Item, Outcome, Request
from memantics.evaluation.audits.benchmark import audit, drop_repeated, order_findings
from memantics.evaluation.audits.blind import (
    compare_judgements,
    judge_consistency,
    judge_swap,
    rotate,
)
from memantics.evaluation.audits.published import find_kinship, judge_models, judge_published
from memantics.evaluation.audits.subject import AuditSubject
from memantics.models.cache import Cache
from memantics.models.fake import FakeModel
from tests.audit.toys import (
    CARD,
    Flaws,
    draw_images,
    make_asker,
    make_exam,
    make_inquiry,
    make_items,
    make_subject,
    name_pictures,
    open_exam,
    trivial,
)

N = 60


def has_image(request: Request) -> bool:
    return any(isinstance(part, Image) for m in request.messages for part in m.parts)


def right_key(request: Request, items: list[Item]) -> str:
    """The key under which the right text stands now, wherever it was moved."""
    item = next(own for own in items if own.form.question == request.form.question)
    text = next(o.text for o in item.form.fields[0].options if o.key == item.gold)
    return next(o.key for o in request.form.fields[0].options if o.text == text)


def run(
    subject: AuditSubject, out: Path, *models: FakeModel
) -> tuple[dict[str, Finding], list[Gap]]:
    found = asyncio.run(audit(subject, [CARD], trivial(), make_inquiry(out, *models)))
    assert not found.failed
    return {own.key: own for own in found.findings}, found.gaps


@pytest.fixture
def items() -> list[Item]:
    return make_items(N)


@pytest.fixture
def subject(tmp_path: Path, items: list[Item]) -> AuditSubject:
    folder = tmp_path / "images"
    folder.mkdir()
    draw_images(folder, items)
    return make_subject(folder, items)


def test_a_model_that_looks_is_lost_without_images(
    tmp_path: Path, subject: AuditSubject, items: list[Item]
) -> None:
    model = FakeModel(lambda r: right_key(r, items) if has_image(r) else "A", "looks")
    found, _ = run(subject, tmp_path / "runs", model)
    own = found["blind"]
    assert own.verdict == "sound"
    rows = {row.label: row.value for row in own.rows}
    assert rows["with images"] == 1.0
    assert rows["correct without images"] == own.score.value
    assert rows["correct only with images"] == pytest.approx(1 - (own.score.value or 0))
    assert found["permutation"].verdict == "sound"
    assert found["position.model"].verdict == "sound"


def test_a_model_that_never_looks_is_found_out(
    tmp_path: Path, subject: AuditSubject, items: list[Item]
) -> None:
    model = FakeModel(lambda r: right_key(r, items), "reads")
    own = run(subject, tmp_path / "runs", model)[0]["blind"]
    assert (own.verdict, own.score.value) == ("broken", 1.0)
    assert "100%" in own.meaning


def test_a_model_in_love_with_a_letter_is_found_out(tmp_path: Path, subject: AuditSubject) -> None:
    found, _ = run(subject, tmp_path / "runs", FakeModel(lambda _: "B", "stubborn"))
    assert found["position.model"].verdict == "broken"
    assert found["position.model"].score.value == 1.0
    assert found["permutation"].verdict == "broken"
    assert found["permutation"].score.value == 0.0
    accuracies = [row.value or 0 for row in found["permutation"].rows[:4]]
    assert sum(accuracies) == pytest.approx(1)


def test_answers_are_kept_and_not_asked_again(tmp_path: Path, subject: AuditSubject) -> None:
    first, second = FakeModel(lambda _: "B", "kept"), FakeModel(lambda _: "B", "kept")
    run(subject, tmp_path / "runs", first)
    run(subject, tmp_path / "runs", second)
    # With images, blind, and three more orders.
    assert first.asked == 5 * N
    assert second.asked == 0


def test_a_copy_without_images_is_audited_blind(tmp_path: Path, items: list[Item]) -> None:
    empty = tmp_path / "none"
    empty.mkdir()
    subject = make_subject(empty, items, complete=False, hooks=AuditHooks(pictures=name_pictures))
    exam = open_exam(subject)
    assert len(exam.items) == N
    assert exam.seen == ()
    assert not any(item.images for item in exam.items)
    asked: list[bool] = []

    def say(request: Request) -> str:
        asked.append(has_image(request))
        return right_key(request, items)

    found, gaps = run(subject, tmp_path / "runs", FakeModel(say, "blindfolded"))
    assert found["blind"].verdict == "broken"
    assert not any(asked)
    assert any(gap.check == "run with images" for gap in gaps)


def test_a_second_opinion_never_comes_from_the_cache(
    tmp_path: Path, subject: AuditSubject, items: list[Item]
) -> None:
    exam = open_exam(subject)
    with closing(Cache(tmp_path / "cache.sqlite")) as cache:
        asker = replace(make_asker(tmp_path / "runs"), cache=cache)
        model = FakeModel(lambda _: "B", "asked", cacheable=True)

        async def ask_thrice() -> list[int]:
            counts = []
            for mark, fresh in (("first", False), ("cached", False), ("again", True)):
                await asker.ask(exam, model, exam.seen, mark, fresh=fresh)
                counts.append(model.asked)
            return counts

        # Both items of a meme have their own question, so every item is a cimage and texts own.
        assert asyncio.run(ask_thrice()) == [N, N, 2 * N]


def test_refusals_are_not_hidden(tmp_path: Path, subject: AuditSubject) -> None:
    found, _ = run(subject, tmp_path / "runs", FakeModel(lambda _: "…", "babbles"))
    assert found["blind"].score.value == 0.0
    assert found["permutation"].score.value == 0.0


def test_rotating_all_the_way_round_changes_nothing(items: list[Item]) -> None:
    for item in items[:5]:
        assert rotate(item, 4) == item
        for step in range(4):
            turned = rotate(item, step)
            texts = {o.key: o.text for o in turned.form.fields[0].options}
            before = {o.key: o.text for o in item.form.fields[0].options}
            assert texts[str(turned.gold)] == before[str(item.gold)]


FORM = Form("Judge.", (Field("rating", "integer", low=1, high=5),), reply="json")


def judged(**values: object) -> list[Outcome]:
    value = json.loads(json.dumps(values))
    return [
        Outcome(Item(str(n), str(n), "", FORM), "answered", {**value, "id": n}) for n in range(10)
    ]


RATED = frozenset({"label", "vea", "lc"})


@pytest.mark.parametrize(
    ("second", "same", "close"),
    [
        ({"label": "calm", "vea": 4, "lc": True}, True, True),
        ({"label": "calm", "vea": 5, "lc": True}, True, True),
        ({"label": "calm", "vea": 2, "lc": True}, True, False),
        ({"label": "sad", "vea": 4, "lc": True}, False, False),
        ({"label": "calm", "vea": 4, "lc": False}, False, False),
    ],
)
def test_judgements_are_compared_by_their_verdict(
    second: dict[str, object], same: bool, close: bool
) -> None:
    first = judged(label="calm", vea=4, lc=True)[0]
    found = compare_judgements(first, judged(**second)[1], RATED)
    assert (found.same, found.close) == (same, close)


def test_an_invalid_judgement_is_never_the_same() -> None:
    first = judged(label="calm", vea=4, lc=True)[0]
    assert not compare_judgements(first, Outcome(first.item, "unparsed"), RATED).same


def test_a_judge_of_two_minds_is_broken() -> None:
    exam = make_exam(make_items(4))
    first = judged(label="calm", vea=5, lc=True)
    second = [*first[:5], *judged(label="sad", vea=1, lc=True)[5:]]
    own = judge_consistency(exam, "m", "again", (first, second), RATED)
    assert (own.verdict, own.score.value, own.score.n) == ("broken", 0.5, 10)
    own = judge_consistency(exam, "m", "again", (first, first), RATED)
    assert own.verdict == "sound"


def test_a_judge_that_says_the_same_without_images_is_broken() -> None:
    exam = make_exam(make_items(4))
    first = judged(label="calm", vea=5, lc=True)
    own = judge_consistency(exam, "m", "unseen", (first, first), RATED)
    assert own.verdict == "broken"
    other = judge_consistency(exam, "m", "unseen", (first, judged(label="sad", vea=1)), RATED)
    assert other.verdict == "sound"


def test_a_judge_that_does_not_notice_the_exchange_is_broken(items: list[Item]) -> None:
    exam = make_exam(items)
    right = [Outcome(item, "answered", item.gold) for item in items]
    wrong = [Outcome(item, "answered", "?") for item in items]
    assert judge_swap(exam, "m", (right, right)).verdict == "broken"
    assert judge_swap(exam, "m", (right, wrong)).verdict == "sound"
    assert judge_swap(exam, "m", (wrong, wrong)).verdict == "worth knowing"


@pytest.mark.parametrize(
    ("model", "maker", "kinship"),
    [
        ("openai/Qwen/Qwen3-VL-8B-Instruct", "Qwen3-VL-8B-Instruct", "same"),
        ("Qwen3-VL-8B", "Qwen3-VL-8B-Instruct", "same"),
        ("Qwen2-VL-7B", "Qwen3-VL-8B-Instruct", "family"),
        ("gpt-4o-mini", "GPT-4o", "same"),
        ("gpt-4.1", "GPT-4o", "family"),
        ("Pixtral-12B", "GPT-4o", None),
        ("", "GPT-4o", None),
    ],
)
def test_kinship_goes_by_name(model: str, maker: str, kinship: str | None) -> None:
    assert find_kinship(model, maker) == kinship


def test_models_that_wrote_the_data_are_marked() -> None:
    exam = make_exam(make_items(8))
    makers = (Maker("questions", "Qwen3-VL-8B-Instruct", ("qa",), "the paper"),)
    score = exam.score([Outcome(item, "answered", item.gold) for item in exam.items])
    lower = replace(score, value=0.4)
    pairs = [("openai/Qwen3-VL-4B", score), ("openai/Pixtral", lower)]
    own, other = judge_models(exam, makers, pairs)
    assert (own.verdict, own.expected) == ("worth knowing", 0.4)
    assert other.verdict == "sound"
    elsewhere = replace(makers[0], tasks=("chat",))
    assert not list(judge_models(exam, (elsewhere,), pairs))


def test_published_rows_of_the_makers_family_are_marked() -> None:
    exam = make_exam(make_items(8))
    makers = (Maker("questions", "Qwen3-VL-8B-Instruct", ("qa",), "the paper"),)
    rows = [
        PublishedRow(
            task="qa",
            system=system,
            metrics={"accuracy": value},
            digits=2,
            source="Table 2",
            feasible=None,
        )
        for system, value in (("Qwen2.5-VL", 0.8), ("Pixtral", 0.6))
    ]
    (own,) = judge_published(exam, rows, makers)
    assert (own.score.value, own.score.n, own.expected) == (0.8, 1, 0.6)
    assert "does not show" in own.meaning


def test_a_benchmarks_own_finding_replaces_the_general_one(tmp_path: Path) -> None:
    items = make_items(N, Flaws(long_keys=0.9))
    draw_images(tmp_path, items)
    general = run_quietly(make_subject(tmp_path, items))
    special = replace(general["shortcut.longest"], title="Ours")
    found = run_quietly(
        make_subject(tmp_path, items, hooks=AuditHooks(findings=lambda _: (special,)))
    )
    assert found["shortcut.longest"].title == "Ours"
    assert len(found) == len(general)


def run_quietly(subject: AuditSubject) -> dict[str, Finding]:
    found = asyncio.run(audit(subject, [CARD], trivial()))
    assert any("no model was given" in gap.reason for gap in found.gaps)
    assert order_findings(found.findings)[0].verdict == "broken"
    assert drop_repeated(found.findings) == found.findings
    return {own.key: own for own in found.findings}
