"""Comparing judges: people, changed and wrong answers, own family, repeats, cost, and the page."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

import memantics as mm
from memantics.core.errors import InputError
from memantics.core.records import Form, Item, Outcome
from memantics.evaluation.judging.audit import family_of
from memantics.evaluation.judging.changes import CHANGES, change_answers, change_fact, draw_sample
from memantics.evaluation.judging.page import JudgeFinding
from memantics.web.phrases import PageLanguage
from tests.commands import Shell
from tests.judge.conftest import MEMES, Scripted
from tests.judge.test_judge import number, say
from tests.judge.test_people import names, write

Plant = Callable[..., Scripted]


def find(done: mm.JudgeComparison, judge: str, kind: str, name: str) -> JudgeFinding:
    return next(
        one
        for one in done.findings
        if (one.judge, one.kind, one.name, one.quality)
        in ((judge, kind, name, "correctness"), (judge, kind, name, ""))
    )


def outcome(name: str, references: list[str], answer: str, text: str = "") -> Outcome:
    form = Form("?", (), "en", "text", {"text": text} if text else {})
    return Outcome(Item(name, name, [*references], form), "answered", answer)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.0, "0"), (0.0007278, "< 0.01"), (0.0123, "0.0123"), (1.2345, "1.23"), (12345.6, "12,346")],
)
def test_costs_are_short(value: float, shown: str) -> None:
    assert JudgeFinding("j", "cost", "seconds per answer", "", 3, value).span == shown


def test_each_change_by_hand() -> None:
    sample = [
        outcome(
            "a", ["The cat is tired.", "A cat sleeps."], "The meme says that cats sleep.", "Zzz"
        ),
        outcome("b", ["会议太长了，大家都想走。"], "嘲讽会议"),
    ]
    made = {change.name: change_answers(change, sample) for change in CHANGES}
    values = {name: [one.value for one in found] for name, found in made.items()}
    assert values["filler"][0] == (
        "The meme says that cats sleep. In other words, this is the point that the author wants to "
        "make with this meme."
    )
    assert values["filler"][1] == "嘲讽会议换句话说，这就是作者想通过这个表情包表达的意思。"
    assert values["without opening"] == ["cats sleep."]
    assert [one.item.gold for one in made["references reversed"]] == [
        ["A cat sleeps.", "The cat is tired."]
    ]
    assert (values["a reference"], made["a reference"][0].item.gold) == (
        ["The cat is tired."],
        ["A cat sleeps."],
    )
    assert values["another meme"] == ["会议太长了，大家都想走。", "The cat is tired."]
    assert values["one fact changed"] == ["The cat is not tired.", "会议太长了，大家都不想走。"]
    assert '"Zzz"' in str(values["caption paraphrased"][0])
    assert change_fact("Nothing here fits") == ""


def test_a_sample_is_the_same_whatever_the_order() -> None:
    many = [outcome(f"i{n}", ["x"], "y") for n in range(30)]
    drawn = draw_sample(many, 7)
    assert draw_sample(many[::-1], 7) == drawn
    assert len(drawn) == 7


@pytest.mark.parametrize(
    ("model", "family"),
    [("openai/Qwen/Qwen2.5-VL", "qwen"), ("openai/gpt-4o", "gpt"), ("judge/7", "judge/7")],
)
def test_the_family_of_a_model(model: str, family: str) -> None:
    assert family_of(model) == family


def test_a_judge_that_rewards_length_is_seen(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    plant(
        "fair", lambda answer: say(4, 4) if number("0" + answer) and "says" in answer else say(1, 1)
    )
    plant("long", lambda answer: say(5, 5) if len(answer) > 40 else say(3, 3))
    mm.judge(run, model=["judge/fair", "judge/long"])
    rows: list[dict[str, object]] = [
        {"item": name, "correctness": 4, "coverage": 4} for name in names(run)
    ]
    done = mm.compare_judges(
        [run],
        model=["judge/fair", "judge/long"],
        people=write(tmp_path / "r.jsonl", rows),
        sample=6,
    )
    assert done.judges == ("judge/fair", "judge/long")
    assert find(done, "judge/long", "change", "filler").value == pytest.approx(2.0)
    assert find(done, "judge/fair", "change", "filler").value == pytest.approx(0.0)
    assert find(done, "judge/long", "wrong answer", "another meme").value == pytest.approx(
        1.0, abs=0.5
    )
    assert find(done, "judge/fair", "wrong answer", "constant sentence").value == 0.0
    bias = find(done, "judge/long", "bias", "mark minus human rating")
    assert (bias.value, bias.n) == (-1.0, MEMES)
    again = find(done, "judge/long", "consistency", "same mark again")
    assert (again.value, again.n) == (1.0, 6)
    assert find(done, "judge/fair", "cost", "tokens per answer").n == MEMES
    # Stored marks of changed answers are not marks of the run.
    assert mm.score(run).scores["judge_correctness"].n == MEMES
    (judged,) = mm.judge(run, model="judge/long")
    assert judged.run.scores["judge_correctness"].value == 3.0


def test_a_judge_that_prefers_its_family(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    other = mm.evaluate(
        "memeintent/intent",
        "baseline/majority",
        out=tmp_path / "runs",
        settings=mm.EvaluationSettings(limit=MEMES),
    )
    kind = lambda answer: say(3, 3) if "the meme says" in answer else say(5, 5)  # noqa: E731
    plant("majority", kind)  # the family of baseline/majority
    plant("neutral", lambda _: say(3, 3))
    mm.judge([run, other], model=["judge/majority", "judge/neutral"])
    done = mm.compare_judges([run, other])
    found = find(done, "judge/majority", "self-preference", "own family minus others")
    assert (found.value, found.n) == (2.0, 2 * MEMES)
    assert not any(
        one.judge == "judge/neutral" and one.kind == "self-preference" for one in done.findings
    )


def test_the_page_names_what_a_judge_accepts(run: mm.Run, plant: Plant, tmp_path: Path) -> None:
    plant("kind", lambda _: say(5, 5))
    mm.judge(run, model="judge/kind")
    done = mm.compare_judges([run], model=["judge/kind"], sample=3, repeats=0)
    pages: tuple[tuple[PageLanguage, str], ...] = (
        ("en", "judge/kind</bdi> accepts: "),
        ("zh", "judge/kind</bdi> 放行："),
    )
    for language, told in pages:
        page = done.save(tmp_path / f"{language}.html", language).read_text(encoding="utf-8")
        assert f'lang="{language}"' in page
        assert told in page
        assert not re.search(r"https?://", page)
    assert "另一张表情包的意图" in (tmp_path / "zh.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="'fr' is not a language"):
        done.save(tmp_path / "fr.html", "fr")  # type: ignore[arg-type]


@pytest.mark.slow
def test_judges_are_compared_from_the_command_line(run: mm.Run, tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    assert "no judge has rated" in shell.refused("judge", "compare", run.folder)
    assert shell.run("judge", run.folder, "--model", "baseline/random").code == 0
    ran = shell.run("judge", "compare", run.folder, "--out", "judges.html", "--language", "zh")
    assert ran.code == 0, ran.err
    assert "page: judges.html" in ran.out
    assert (tmp_path / "judges.html").is_file()


@pytest.mark.slow
def test_the_effect_of_length_is_for_equal_ratings(
    run: mm.Run, plant: Plant, tmp_path: Path
) -> None:
    """Answers 10 and 11 are one character longer. A constant judge has no preference for length."""
    plant("flat", lambda _: say(3, 3))
    plant("long", lambda answer: say(5 if number(answer) > 9 else 3, 3))
    mm.judge(run, model=["judge/flat", "judge/long"])
    rows: list[dict[str, object]] = [
        {"item": name, "correctness": 1 + n % 2 + 3 * (n > 9), "coverage": 3}
        for n, name in enumerate(names(run))
    ]
    done = mm.compare_judges([run], people=write(tmp_path / "r.jsonl", rows))
    measure = "bias per doubling of length"
    assert find(done, "judge/flat", "length", measure).value == pytest.approx(0.0)
    assert (find(done, "judge/long", "length", measure).value or 0) > 1
