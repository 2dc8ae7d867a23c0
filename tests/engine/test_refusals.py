"""A refusal in words is a refusal on every task, in English and Chinese; an answer never is."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.records import Reply
from memantics.core.refusals import find_refusal
from memantics.core.rundir import read_facts
from memantics.evaluation.scoring import read_outcomes
from memantics.evaluation.tasks import open_task_of_run
from memantics.models.engine import read_reply
from research.refusals import BLIND, REPLIES, measure, read_replies
from tests.runs import pick, write_run

SORRY = "I'm sorry, but I can't help with analyzing this content."
CHINESE = "抱歉，我无法分析这张图片。"


def read_statuses(folder: Path) -> list[str]:
    facts = read_facts(folder)
    return [o.status for o in read_outcomes(folder, open_task_of_run(facts, None)[1])]


def test_a_refusal_is_refused_on_a_choice_task(tmp_path: Path) -> None:
    folder = write_run(
        tmp_path / "choice",
        "mquest/qa",
        {"1": SORRY, "2": CHINESE, "3": "Answer: A", "4": "no idea"},
        golds=dict.fromkeys("1234", "A"),
        tags={"dimension": "Scene", "kind": "R"},
        form=pick("A", "B", "C", "D"),
    )
    assert read_statuses(folder) == ["refused", "refused", "answered", "unparsed"]


def test_a_refusal_is_refused_on_free_text(tmp_path: Path) -> None:
    """It was an answer with a ROUGE score on MemeIntent."""
    about = "The meme mocks assistants that say they cannot help."
    folder = write_run(
        tmp_path / "text", "memeintent/intent", {"1": SORRY, "2": CHINESE, "3": about}
    )
    assert read_statuses(folder) == ["refused", "refused", "answered"]


def test_a_label_in_a_refusal_is_not_an_answer() -> None:
    said = "I'm sorry, but I can't assist with harmful content."
    assert read_reply(Reply(said), lambda _: "harmful") == ("refused", None, said)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "B",
        f'The meme quotes a bot: "{SORRY}"',
        "I can't be certain, but the answer is B.",
        "I cannot determine the word, but it is a pun.",
        '{"answer": "B", "explanation": "I cannot help him."}',
        "I can't help with that. " + "The cat sits on a table and looks at a plate of fish. " * 3,
        "x" * 5000 + SORRY,
        "他拒绝回答老师的问题，很好笑。",
        "While I won't repeat the slur, the meme is hateful because it calls people by it.",
        "AI: I can't discuss that. User: it's a recipe. The meme ridicules filters.",
        "I can't help thinking the meme is about exams.",
        "我无法辨认右下角的小字，但整体上是积极的情感。",
        "无法判断作者是谁；从内容看属于讽刺，选C。",
    ],
)
def test_answers_are_not_refusals(text: str) -> None:
    assert find_refusal(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        SORRY,
        CHINESE,
        f"<think>The user wants a label.</think>{SORRY}",
        '{"intent": "I\'m sorry, but I can\'t assist with that."}',
        "This isn’t something I can engage with.",
        "Your response was blocked by the content filter.",
        "Answer: I can't answer this question.",
        "I won’t be able to choose one of these options.",
        '{"label": null, "reason": "内容涉及敏感信息，无法作答"}',
        "对不起，这个我真的帮不了你哦～",
        "由于图片包含不当信息，我选择不作回答。",
        "作為人工智慧，我無法對這張圖片發表看法。",
        "I’m sorry, but I can’t help with that. If you have other questions, feel free to ask!",
    ],
)
def test_refusals_are_found(text: str) -> None:
    assert find_refusal(text)


@pytest.mark.parametrize(
    ("path", "precision", "recall"), [(REPLIES, 0.98, 0.96), (BLIND, 0.93, 0.76)]
)
def test_error_rates_on_written_replies(path: Path, precision: float, recall: float) -> None:
    """The published rates (docs/research/refusals.md); no rule was fitted to the blind set."""
    replies = read_replies(path)
    assert sum(one.refusal for one in replies) >= 200
    assert sum(not one.refusal for one in replies) >= 400
    rates = measure(replies)
    assert rates.precision[0] >= precision
    assert rates.recall[0] >= recall
