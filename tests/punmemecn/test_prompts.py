"""What is sent: seven prompts, three tasks, two languages, and whose examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.punmemecn.wording import STYLES
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.records import Image, Item, Message
from memantics.core.task import Task
from tests.punmemecn.release import SAMPLE, make_task, write_release

TASKS = ("detection", "sentiment", "chat")
NUMBERS = tuple(STYLES)
OFFICIAL = (30, 31, 32, 33, 34, 35, 601, 603, 604)


@pytest.fixture
def official(tmp_path: Path) -> Source:
    return write_release(tmp_path, OFFICIAL)


def ask(task: Task, item: Item | None = None) -> tuple[Message, ...]:
    return task.ask(item or next(task.items()), None).messages


def text_of(messages: tuple[Message, ...]) -> str:
    return "\n".join(p for m in messages for p in m.parts if isinstance(p, str))


def images_of(messages: tuple[Message, ...]) -> list[str]:
    return [p.path.name for m in messages for p in m.parts if isinstance(p, Image)]


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("task", TASKS)
def test_a_prompt_holds_what_its_number_says(
    task: str, number: str, language: str, official: Source
) -> None:
    made = make_task(task, official, prompt=number, language=language)
    item = next(made.items())
    messages = ask(made, item)
    text, style = text_of(messages), STYLES[number]
    captions = [f"有茶就型{int(name[2:7])}" for name in images_of(messages) if name.count(".") == 1]
    assert len(messages) == 1
    assert all((caption in text) == style.caption for caption in captions)
    assert ("yǒu chá" in text) == style.pinyin
    assert (("分析：" if language == "zh" else "Analysis:") in text) == style.reasons
    shown = {"detection": 3, "sentiment": 3, "chat": 4}[task] if style.shots else 0
    own = [image.path.name for image in item.images]
    assert images_of(messages) == images_of(messages)[:shown] + own
    assert len(images_of(messages)) == shown + len(own)
    assert ("第四张" in text or "fourth" in text) == (style.shots or task == "chat")
    assert ("第八张" in text or "eighth" in text) == (style.shots and task == "chat")


@pytest.mark.parametrize("task", ["detection", "sentiment"])
def test_puns_are_defined_as_intended_and_seen(task: str, official: Source) -> None:
    for language, said in (
        ("en", ("plays on purpose", "at least one of the meanings rests on what is seen")),
        ("zh", ("有意借助", "至少有一层意思落在画面里看得到的东西上")),
    ):
        made = make_task(task, official, language=language)
        text = text_of(ask(made, next(made.items())))
        assert all(own in text for own in said)


@pytest.mark.slow
def test_every_prompt_is_another_text(official: Source) -> None:
    for task in TASKS:
        texts = {
            text_of(ask(make_task(task, official, prompt=number, language=language)))
            for number in NUMBERS
            for language in ("zh", "en")
        }
        assert len(texts) == 14


def test_the_authors_examples_where_they_are(official: Source) -> None:
    detection = make_task("detection", official, prompt="3")
    assert images_of(ask(detection))[:3] == [
        "CN00601.png",
        "CN00601.similar_image.png",
        "CN00601.similar_text.png",
    ]
    sentiment = make_task("sentiment", official, prompt="3")
    assert images_of(ask(sentiment))[:3] == ["CN00601.png", "CN00603.png", "CN00604.png"]
    chat = make_task("chat", official, prompt="3")
    first = text_of(ask(chat)).partition("回答：")[2]
    assert first.startswith("C")
    assert images_of(ask(chat))[2] == "CN00031.png"
    for task in (detection, sentiment, chat):
        assert [name for name in task.prompts if "by authors" in name]


@pytest.mark.parametrize("task", TASKS)
def test_ours_where_they_are_not_and_the_run_says_so(task: str, tmp_path: Path) -> None:
    partial = write_release(tmp_path, range(1, 8))
    made = make_task(task, partial, prompt="6")
    assert [name for name in made.prompts if "by ours" in name and "CN9" in name]
    shown = images_of(ask(made))
    assert shown[0].startswith("CN9")
    assert not shown[-1].startswith("CN9")
    with pytest.raises(DataError, match="shots=ours"):
        make_task(task, partial, prompt="6", shots="authors")


def test_examples_without_images_do_not_serve(tmp_path: Path) -> None:
    source = write_release(tmp_path, OFFICIAL)
    (tmp_path / "CN00601.similar_text.png").unlink()
    made = make_task("detection", source, prompt="3")
    assert [name for name in made.prompts if "by ours" in name]
    asked = make_task("detection", source, prompt="3", images="present").items()
    assert not any(item.group == "CN00601" for item in asked)


@pytest.mark.parametrize("task", TASKS)
def test_our_examples_are_not_asked_on_the_sample(task: str) -> None:
    made = make_task(task, SAMPLE, prompt="4")
    items = list(made.items())
    shown = {"detection": 3, "sentiment": 3, "chat": 4}[task]
    examples = images_of(ask(made, items[0]))[:shown]
    if task == "chat":
        histories = [item.form.context["history"] for item in items]
        example = text_of(ask(made, items[0])).partition("聊天：\n")[2].partition("\n\n")[0]
        assert example not in histories
    else:
        asked = {image.path.name for item in items for image in item.images}
        assert not asked & set(examples)


def test_examples_as_turns(official: Source) -> None:
    made = make_task("sentiment", official, prompt="6", layout="turns")
    messages = ask(made)
    assert [m.role for m in messages] == [*("user", "assistant") * 3, "user"]
    assert all(len(images_of((m,))) == 1 for m in messages if m.role == "user")
    assert "第四张" not in text_of(messages)
    reply = text_of(messages[1:2])
    assert reply.startswith("分析：")
    assert made.parse(reply, next(made.items()).form) == {"target": "self", "type": "positive"}


@pytest.mark.parametrize("language", ["zh", "en"])
@pytest.mark.parametrize("number", ["4", "7"])
@pytest.mark.parametrize("task", TASKS)
def test_worked_replies_are_read_by_both_parsers(
    task: str, number: str, language: str, official: Source
) -> None:
    for parser in ("tolerant", "paper"):
        made = make_task(
            task, official, prompt=number, language=language, layout="turns", parser=parser
        )
        item = next(made.items())
        replies = [text_of((m,)) for m in ask(made, item) if m.role == "assistant"]
        values = [made.parse(reply, item.form) for reply in replies]
        assert (
            values
            == {
                "detection": ["pun", "non-pun", "non-pun"],
                "sentiment": [{"target": "self", "type": "positive"}] * 3,
                "chat": ["C"],
            }[task]
        )


def test_reasons_tell_homophones_from_senses(tmp_path: Path) -> None:
    made = make_task("sentiment", write_release(tmp_path, OFFICIAL), prompt="6")
    text = text_of(ask(made))
    assert "听起来就是“有茶就行601”" in text
    assert "“有茶就型604”有两个意思" in text


def test_a_hint_is_laid_over_the_number(official: Source) -> None:
    with_hint = text_of(ask(make_task("detection", official, prompt="1", hint="pinyin")))
    assert "yǒu chá" in with_hint
    assert "有茶" not in with_hint
    assert "yǒu" not in text_of(ask(make_task("chat", official, prompt="5", hint="none")))


def test_a_dollar_in_a_caption_opens_no_hole(official: Source) -> None:
    made = make_task("detection", official, prompt="2")
    item = next(i for i in made.items() if i.tags["role"] == "similar_text")
    assert "茶30$x" in text_of(ask(made, item))


def test_chat_history_ends_where_the_meme_goes(official: Source) -> None:
    assert "乙：30。\n甲：（表情包回复）" in text_of(ask(make_task("chat", official)))


def test_examples_enter_what_a_run_remembers(tmp_path: Path) -> None:
    one = make_task("detection", write_release(tmp_path / "a", OFFICIAL), prompt="4").prompts
    other = write_release(tmp_path / "b", OFFICIAL)
    meta = tmp_path / "b" / "_Meta.json"
    meta.write_text(meta.read_text(encoding="utf-8").replace("有茶就型601", "有茶就星601"), "utf-8")
    two = make_task("detection", other, prompt="4").prompts
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == [
        name for name in one if "by authors" in name
    ]


def test_repetitions_are_draws_of_their_own(official: Source) -> None:
    def seeds(**options: str) -> set[int | None]:
        made = make_task("sentiment", official, per_target="12", **options)
        return {made.ask(item, None).sampling.seed for item in made.items()}

    assert seeds() == {2026, 2027}
    assert seeds(temperature="0") == {None}
    assert seeds(set="plain") == {None}
    made = make_task("sentiment", official)
    assert made.ask(next(made.items()), None).sampling.temperature == 0.7
    for task in ("detection", "chat", "ocr", "pinyin"):
        made = make_task(task, official)
        assert made.ask(next(made.items()), None).sampling.temperature == 0.0


def test_pinyin_shows_no_image_and_no_foreign_signs(official: Source) -> None:
    made = make_task("pinyin", official, set="all")
    item = next(made.items())
    messages = ask(made, item)
    assert not images_of(messages)
    assert item.form.context == {"caption": "有茶就型"}
    assert item.gold == "yǒu chá jiù xíng"
    assert text_of(messages).endswith("有茶就型")
