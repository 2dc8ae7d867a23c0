"""The authors' own prompts, from a script that is shaped like theirs and must never run."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.benchmarks.registry import find_tasks
from memantics.core.data import Source
from memantics.core.errors import DataError, InputError
from memantics.core.records import Image, Item
from memantics.core.task import Task
from tests.commands import Shell
from tests.punmemecn.official_script import write_script
from tests.punmemecn.release import SAMPLE, write_release
from tests.servers.fakes import Scripted, serving

NUMBERS = (30, 31, 32, 33, 34, 35, 601, 603, 604)


@pytest.fixture
def clone(tmp_path: Path) -> Source:
    write_release(tmp_path / "PunMemeCN" / "data" / "pun_meme" / "cn", NUMBERS)
    write_script(tmp_path / "PunMemeCN")
    return Source("release", tmp_path / "PunMemeCN")


def make(task: str, source: Source, **options: str) -> Task:
    ref = find_tasks([f"punmemecn/{task}"])[0]
    return ref.make({"wording": "official"} | options, "all", source, None)


def ask(task: Task, item: Item | None = None) -> tuple[list[str], str]:
    """The names of the images, and the text."""
    (message,) = task.ask(item or next(task.items()), None).messages
    images = [part.path.name for part in message.parts if isinstance(part, Image)]
    (text,) = [part for part in message.parts if isinstance(part, str)]
    return images, text


SHOWN = ["CN00601.png", "CN00601.similar_image.png", "CN00601.similar_text.png", "CN00030.png"]
ONE, TWO, FOUR = "有茶就型601", "茶601$x", "有茶就型30"


@pytest.mark.parametrize(
    ("number", "images", "text"),
    [
        ("1", SHOWN[3:], "任务：\n判断。\n\n回答："),
        ("2", SHOWN[3:], f"任务：\n字幕“{FOUR}”。"),
        ("3", SHOWN, "第一张是；\n第二张非；\n判断第四张。"),
        ("4", SHOWN, f"示例：\n一“{ONE}”；\n二“{TWO}”；三“{TWO}”；\n四“{FOUR}”。"),
        (
            "5",
            SHOWN,
            f"一“{ONE}”拼音“yǒu chá jiù xíng 601”；四“{FOUR}”拼音“yǒu chá jiù xíng 30”。",
        ),
        (
            "6",
            SHOWN,
            f"分析：一“{ONE}”，谐音。\n判断：双关\n分析：二“{TWO}”。\n判断：非双关\n四“{FOUR}”。",
        ),
        ("7", SHOWN, f"七“chá 601$xchá 601$x”四“{FOUR}”。"),
    ],
)
def test_each_of_the_seven_prompts_is_the_one_of_the_script(
    number: str, images: list[str], text: str, clone: Source
) -> None:
    made = make("detection", clone, prompt=number)
    assert ask(made) == (images, f"定义：\n双关 5$。\n\n{text}")
    assert [name for name in made.prompts if name.startswith("official_detection.zh")]
    assert (len(made.prompts) == 2) == (number in "34567"), "the examples are remembered too"


def test_english_sentiment_asks_for_the_authors_keys_and_reads_them(clone: Source) -> None:
    made = make("sentiment", clone, language="en", prompt="3")
    item = next(made.items())
    assert ask(made, item)[1] == (
        'Definition:\n\nFirst {"Sentiment Target": "self", "Sentiment Type": "positive"}.\n'
        'Reply {"Sentiment Target": "XXX", "Sentiment Type": "XXX"}.'
    )
    reply = '{"Sentiment Target": "both", "Sentiment Type": "neutral"}'
    wanted = {"target": "both", "type": "neutral"}
    assert made.parse(reply, item.form) == wanted
    paper = make("sentiment", clone, language="en", prompt="3", parser="paper")
    assert paper.parse(reply, item.form) == wanted


def test_chinese_sentiment_holds_the_labels_of_the_examples(clone: Source) -> None:
    images, text = ask(make("sentiment", clone, prompt="6"))
    label = '{"情感指向对象": "自己", "情感类别": "积极"}'
    assert images == ["CN00601.png", "CN00603.png", "CN00604.png", "CN00030.png"]
    assert f"一“{ONE}”{label}；\n三{label}。四“{FOUR}”。" in text


def test_the_chat_has_its_options_history_and_worked_analysis(clone: Source) -> None:
    made = make("chat", clone, prompt="2")
    item = next(made.items())
    images, text = ask(made, item)
    captions = [f"有茶就型{int(name[2:7])}" for name in images]
    assert text == (
        f"定义：\n\n一“{captions[0]}”四“{captions[3]}”。\n【聊天】：\n甲：忙吗？\n乙：30。\n"
        "甲：（表情包回复）\n【选项】：\nA: 甲一\nB: 甲二\n\n回答："
    )
    made = make("chat", clone, prompt="7")
    images, text = ask(made)
    first, last = (f"有茶就型{int(images[n][2:7])}" for n in (0, 7))
    sound = f"yǒu chá jiù xíng {int(images[0][2:7])}"
    assert text == (
        f"定义：\n\n一“{first}”八“{last}”拼音“yǒu chá jiù xíng {int(images[7][2:7])}”。\n"
        "【聊天一】：\n甲：忙吗？\n乙：31。\n甲：（表情包回复）\n【选项】：\nA: 甲一\nB: 甲二\n"
        f"【分析】：\n第一张“{first}”拼音“{sound}”。\n故选C。\n正确答案：C\n\n"
        "【聊天二】：\n甲：忙吗？\n乙：30。\n甲：（表情包回复）\n"
        "【选项】：\nA: 甲五\nB: 甲六\n\n回答："
    )
    assert "拼音" not in ask(make("chat", clone, prompt="6"))[1].partition("【分析】")[2]


def test_reading_pinyin_and_harm(clone: Source) -> None:
    assert ask(make("ocr", clone, set="all"))[1] == "提取字幕。\n字幕："
    text = ask(make("pinyin", clone, set="all"))[1]
    assert text == "转成拼音。\n文本：有茶就型 -> 拼音："
    for kind in ("pun", "nonpun"):
        folder = clone.root / "data" / "pun_meme" / "cn" / f"harmful_{kind}"
        folder.mkdir()
        image = clone.root / "data" / "pun_meme" / "cn" / "CN00030.png"
        (folder / "CN00030.png").write_bytes(image.read_bytes())
    made = make("harmful", clone)
    item = next(made.items())
    assert ask(made, item)[1].startswith(f"字幕“{FOUR}”。\n\n形式为{{")
    assert made.parse('{"甲": "a", "乙": "b", "丙": "无害"}', item.form) == "harmless"


@pytest.mark.parametrize(
    ("task", "options", "words"),
    [
        ("detection", {"hint": "pinyin"}, "hint=pinyin"),
        ("detection", {"prompt": "4", "layout": "turns"}, "layout=turns"),
        ("detection", {"question": "structured"}, "question=structured"),
        ("chat", {"prompt": "4", "shots": "ours"}, "shots=ours"),
        ("harmful", {"caption": "none"}, "caption=none"),
    ],
)
def test_what_the_authors_have_no_words_for_is_refused(
    task: str, options: dict[str, str], words: str, clone: Source
) -> None:
    with pytest.raises(InputError, match=f"wording=official has no prompt for {words}"):
        make(task, clone, **options)


def test_their_examples_are_needed_with_their_words(clone: Source) -> None:
    (clone.root / "data" / "pun_meme" / "cn" / "CN00601.png").unlink()
    with pytest.raises(DataError, match="the authors' examples"):
        make("detection", clone, prompt="3", images="present")


def test_a_prompt_that_the_script_lacks_is_refused(clone: Source) -> None:
    with pytest.raises(DataError, match="the authors' script contains no such prompt"):
        make("harmful", clone, language="en")
    (clone.root / "utils" / "eval" / "task.py").write_text("x = 1")
    with pytest.raises(DataError, match="does not contain the prompts in the expected form"):
        make("detection", clone)


@pytest.mark.parametrize("task", ["detection", "sentiment", "chat", "ocr", "pinyin", "harmful"])
def test_without_the_clone_it_is_refused(task: str, tmp_path: Path) -> None:
    source = write_release(tmp_path, NUMBERS)
    for own in (source, SAMPLE):
        with pytest.raises(DataError, match=r"needs utils/eval/task\.py"):
            make(task, own)


def test_the_folder_of_the_data_alone_is_enough_inside_a_clone(clone: Source) -> None:
    inner = Source("release", clone.root / "data" / "pun_meme" / "cn")
    assert ask(make("detection", inner))[1].startswith("定义：\n双关 5$。")


@pytest.mark.slow
def test_the_wording_is_sent_recorded_and_scored_again(clone: Source, shell: Shell) -> None:
    shell.apart.done("data", "add", "punmemecn", clone.root)
    with serving(Scripted(lambda _: "双关")) as server:
        ran = shell.apart.run(
            *("run", "punmemecn/detection", "-m", "openai/toy", "--base-url", server.url),
            *("--limit", "1", "--set", "wording=official,ours", "--set", "prompt=2"),
        )
    assert ran.code == 0, ran
    texts = [body["messages"][0]["content"][-1]["text"] for body in server.bodies]
    assert [text.startswith("定义：\n双关 5$。\n\n任务：\n字幕“") for text in texts] == [
        True,
        False,
    ]
    runs = sorted((shell.folder / "runs").iterdir())
    report = shell.apart.done("report", *runs, "--format", "md")
    assert "wording: official" in report
    assert "wording=ours" in report
    shell.apart.done("score", *runs)


def test_the_pinyin_task_sends_simplified_characters_as_the_authors_do(clone: Source) -> None:
    pytest.importorskip("opencc")
    meta = clone.root / "data" / "pun_meme" / "cn" / "_Meta.json"
    text = meta.read_text(encoding="utf-8")
    assert "有茶就型30" in text
    meta.write_text(text.replace("有茶就型30", "蝦餃30"), encoding="utf-8")
    made = make("pinyin", clone, set="all")
    item = next(item for item in made.items() if item.id == "CN00030")
    assert ask(made, item)[1] == "转成拼音。\n文本：虾饺 -> 拼音："
    ours = find_tasks(["punmemecn/pinyin"])[0].make({"set": "all"}, "all", clone, None)
    item = next(item for item in ours.items() if item.id == "CN00030")
    assert "蝦餃" in ask(ours, item)[1]
    assert item.gold == "xiā jiǎo"


def test_punchline_says_that_it_has_no_official_wording(clone: Source) -> None:
    with pytest.raises(InputError, match="punchline has no official wording") as caught:
        make("punchline", clone)
    assert "punmemecn/punchline:wording=ours" in caught.value.hint
    assert "wording" not in make("punchline", clone, wording="ours").options
