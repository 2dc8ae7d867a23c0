"""Does a model name the homophone? Right, wrong, and how wrong; annotators as a row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.benchmarks.punmemecn.punchline import judge_wrong, names_pair, names_part
from memantics.core.data import Source
from memantics.core.records import Outcome
from memantics.core.task import Unparsed
from tests.punmemecn.release import answer_all, make_task, write_release


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path, range(1, 7))


def test_only_homophones_are_asked(source: Source) -> None:
    """Even numbers are puns on two senses of one word: they have no homophone to name."""
    items = list(make_task("punchline", source).items())
    assert [item.id for item in items] == ["CN00001", "CN00003", "CN00005"]
    assert items[0].gold == {"word": "型", "homophone": "行"}
    assert items[0].form.context == {"caption": "有茶就型1"}
    assert not next(make_task("punchline", source, prompt="1").items()).form.context


@pytest.mark.parametrize(
    ("said", "right"),
    [
        ("行", True),
        ("就行", True),
        ("有茶就行1", True),
        ("“有茶就行1”！", True),
        ("就型", False),
        ("星", False),
        ("茶", False),
        ("", False),
        ("有茶就行2", False),
    ],
)
def test_a_homophone_covers_what_changed_and_stands_in_the_reading(
    source: Source, said: str, right: bool
) -> None:
    task = make_task("punchline", source)
    item = next(task.items())
    text = json.dumps({"解释": "一杯茶", "双关词": "型", "谐音词": said}, ensure_ascii=False)
    value = task.parse(f"好的：{text}", item.form)
    scores = {s.key: s for s in task.score([Outcome(item, "answered", value)]) if not s.by}
    assert scores["accuracy"].value == float(right)
    assert scores["word_accuracy"].value == 1.0


def test_wrong_homophones_are_counted_and_listed(source: Source) -> None:
    task = make_task("punchline", source)
    items = list(task.items())
    values = [{"word": "型", "homophone": "星"}, {"word": "茶", "homophone": "就型"}, None]
    scores = task.score(answer_all(items, values))
    assert scores[0].value == 0.0
    assert scores[0].n == 3
    assert scores[1].value == pytest.approx(1 / 3)
    kinds = {s.label: s.value for s in scores if s.by == "wrong homophones"}
    assert kinds == {
        "as printed": 0.5,
        "another word of that sound": 0.5,
        "a word of another sound": 0.0,
        "nothing": 0.0,
    }
    listed = [s.label for s in scores if s.by == "confused"]
    assert listed == ["有茶就型1: 星 for 有茶就行1", "有茶就型3: 就型 for 有茶就行3"]
    right = task.score(answer_all(items, [item.gold for item in items]))
    assert [s.key for s in right] == ["accuracy", "word_accuracy", "pair_accuracy"]
    assert right[0].value == 1.0


def test_a_reply_without_both_words_is_unparsed(source: Source) -> None:
    task = make_task("punchline", source)
    form = next(task.items()).form
    for text in ("型，行", '{"谐音词": "行"}', '{"双关词": 3, "谐音词": "行"}', ""):
        with pytest.raises(Unparsed):
            task.parse(text, form)
    assert task.parse('{"双关词": "型", "谐音词": null}', form) == {"word": "型", "homophone": ""}
    english = make_task("punchline", source, language="en")
    said = '{"explanation": "tea", "word": "型", "homophone": "行"}'
    assert english.parse(said, next(english.items()).form) == {"word": "型", "homophone": "行"}


def test_the_wrong_homophones_of_the_paper() -> None:
    """Table 8: 争夺鱼 for 真多余, 撞壁 itself for 装逼, 这里 for 这合理."""
    assert judge_wrong("争夺鱼", "蒸多鱼") == "another word of that sound"
    assert judge_wrong("撞壁", "你撞壁吗") == "as printed"
    assert judge_wrong("这里", "这核里吗") == "a word of another sound"
    assert not names_part("争夺鱼", "真多余", "真多余")
    assert names_part("真多余", "真多余", "真多余")


def test_annotators_are_rows_beside_models(source: Source) -> None:
    task = make_task("sentiment", source, set="plain")
    assert task.people is not None
    rows = task.people([Outcome(item, "unparsed") for item in task.items()])
    assert list(rows) == ["annotators", "annotators, each compared with the other two"]
    for own in rows.values():
        assert [s.key for s in own] == ["accuracy", "target_accuracy", "type_accuracy"]
        assert {(s.value, s.n, s.by) for s in own} == {(1.0, 18, "")}
    assert task.people([]) == {}


@pytest.mark.parametrize(
    ("word", "homophone", "right"),
    [
        ("虾头", "下头", True),
        ("虾", "下", True),
        ("虾头男和虾头女", "下头男和下头女", True),
        ("虾头女", "下头女", True),
        ("男和", "男和", False),
        ("虾头", "头男", False),
        ("虾头", "", False),
        ("", "下头", False),
    ],
)
def test_any_right_pair_at_its_place_counts(word: str, homophone: str, right: bool) -> None:
    assert names_pair(word, homophone, "虾头男和虾头女", "下头男和下头女") is right


def test_a_pair_is_found_where_the_reading_is_longer_or_shorter() -> None:
    assert names_pair("狮眠", "失眠", "今晚又狮眠", "今晚我又失眠")
    assert names_pair("狮眠", "失眠", "今晚我又狮眠", "今晚又失眠")
    assert not names_pair("狮眠", "失眠", "狮眠又是今晚", "今晚又是失眠")
