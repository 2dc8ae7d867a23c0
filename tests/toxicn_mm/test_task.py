"""The three tasks of ToxiCN MM on a small release of our own, from items to tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.benchmarks.toxicn_mm import plugin as module
from memantics.benchmarks.toxicn_mm.load import NAMES
from memantics.core.data import Source
from memantics.core.errors import DataError, UnknownName
from memantics.core.records import Image, Outcome, Score
from memantics.core.task import Task
from tests.commands import Shell
from tests.places import SHARED_DATA, needs_shared_data
from tests.setups import make_setup, make_task

# id, label, type id, text flag, image flag, target code (class 2 is sexual, 3 offence)
TEST = [
    (1, 0, 0, 0, 0, 0),
    (2, 0, 0, 0, 0, 0),
    (3, 0, 0, 0, 0, 0),
    (4, 0, 0, 0, 0, 0),
    (5, 1, 1, 1, 0, 4),
    (6, 1, 1, 0, 0, 9),
    (7, 1, 3, 1, 0, 0),
    (8, 1, 3, 0, 1, 0),
    (9, 1, 2, 0, 0, 0),
    (10, 1, 4, 1, 1, 0),
]
TRAIN = [(20, 0, 0, 0, 0, 0), (21, 1, 1, 1, 0, 1)]


def words(number: int) -> dict[str, str]:
    return {
        "text": f"第{number}把伞",
        "text_discription": f"说的是第{number}把伞",
        "meme_discription": "一把蓝色的伞",
    }


def first(number: int, label: int, type_: int, text: int, image: int) -> dict[str, object]:
    code = {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4}[text, image] if label else 0
    return words(number) | {
        "new_path": f"{number}.jpg",
        "label": label,
        "type": type_,
        "modal": [text, image],
        "new_label": [1 - label, label],
        "new_type": [int(place == type_) for place in range(5)],
        "new_modal": code,
    }


def write_release(root: Path, *splits: str, images: bool = False) -> Source:
    root.mkdir(parents=True, exist_ok=True)
    for split, rows in (("train", TRAIN), ("test", TEST)):
        if split not in splits:
            continue
        old = [first(*row[:5]) for row in rows]
        new = [
            words(row[0])
            | dict(
                zip(("label", "type", "text_modal", "image_modal", "target"), row[1:], strict=True)
            )
            | {"path": f"{row[0]}.jpg"}
            for row in rows
        ]
        for version, part in (("v1", old), ("v2", new)):
            name = NAMES[version, split]  # type: ignore[index]
            (root / name).write_text(json.dumps(part, ensure_ascii=False), encoding="utf-8")
    if images:
        (root / "images").mkdir()
        for row in TEST[:6]:
            (root / "images" / f"{row[0]}.jpg").write_bytes(b"not read here")
    return Source("release", root)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path / "release", "train", "test")


def make(name: str, source: Source | None, split: str = "test", **options: str) -> Task:
    return make_task(make_setup(f"toxicn_mm/{name}", options, source, split))


def run(task: Task, replies: dict[str, str]) -> tuple[Score, ...]:
    """Score recorded replies; an item without one is unparsed."""
    outcomes = [
        Outcome(item, "answered", task.parse(replies[item.id], item.form))
        if item.id in replies
        else Outcome(item, "unparsed")
        for item in task.items()
    ]
    return task.score(outcomes)


def find(scores: tuple[Score, ...], key: str, by: str = "", label: str = "") -> Score:
    (score,) = (s for s in scores if (s.key, s.by, s.label) == (key, by, label))
    return score


def test_text_only_needs_no_image_and_sends_none(source: Source) -> None:
    for name in ("detection", "type", "target"):
        task = make(name, source, input="text")
        for item in task.items():
            assert item.images == ()
            (message,) = task.ask(item, None).messages
            (text,) = message.parts
            assert isinstance(text, str)
            assert item.form.context["text"] in text
            assert "说的是" not in text


def test_captions_bring_both_notes_and_no_image(source: Source) -> None:
    task = make("detection", source, input="captions")
    (text,) = task.ask(next(task.items()), None).messages[0].parts
    assert isinstance(text, str)
    assert all(part in text for part in ("第1把伞", "说的是第1把伞", "一把蓝色的伞"))


def test_missing_images_are_an_error_or_left_out(tmp_path: Path) -> None:
    source = write_release(tmp_path / "some", "test", images=True)
    with pytest.raises(DataError, match=r"meme 7: .*--set input=text"):
        list(make("detection", source).items())
    items = list(make("detection", source, images="present").items())
    assert [item.id for item in items] == ["1", "2", "3", "4", "5", "6"]
    request = make("detection", source).ask(items[0], None)
    assert isinstance(request.messages[0].parts[0], Image)


def test_ids_and_file_names_never_reach_the_model(source: Source) -> None:
    task = make("type", source, input="text")
    item = next(item for item in task.items() if item.id == "10")
    text = str(task.ask(item, None).messages[0].parts[0]).replace("第10把伞", "")
    assert "10" not in text


def test_classes_are_lettered_as_in_the_paper_not_as_in_the_files(source: Source) -> None:
    task = make("type", source, input="text")
    gold = {item.id: item.gold for item in task.items()}
    assert (gold["7"], gold["9"]) == ("offence", "sexual")
    form = next(task.items()).form
    values = [task.parse(letter, form) for letter in "ABCDE"]
    assert values == ["targeted", "offence", "sexual", "dispirited", "none"]


def test_detection_table(source: Source) -> None:
    task = make("detection", source, input="text", labels="v2")
    said = dict.fromkeys(("5", "6", "7"), "有害") | dict.fromkeys(("1", "2", "8", "9"), "无害")
    scores = run(task, said | {"3": "有害"})  # memes 4 and 10 have no valid answer
    # harmful: 3 found, 1 false claim, 3 missed; harmless: 2 found, 2 false claims, 2 missed
    assert find(scores, "f1_harmful").value == pytest.approx(6 / 10)
    assert find(scores, "f1_harmful").n == 6
    assert find(scores, "macro_precision").value == pytest.approx((3 / 4 + 2 / 4) / 2)
    assert find(scores, "macro_recall").value == pytest.approx((3 / 6 + 2 / 4) / 2)
    assert find(scores, "macro_f1").value == pytest.approx((6 / 10 + 4 / 8) / 2)
    assert find(scores, "accuracy").value == 0.5
    parts = {s.label: (s.value, s.n) for s in scores if s.by == "modality"}
    assert parts == {
        "fusion": (0.5, 2),
        "text": (1.0, 2),
        "image": (0.0, 1),
        "both": (0.0, 1),
        "harmless": (0.5, 4),
    }
    assert {s.label: s.value for s in scores if s.by == "type"} == {
        "targeted": 1.0,
        "offence": 0.5,
        "sexual": 0.0,
        "dispirited": 0.0,
    }
    assert {s.label: s.value for s in scores if s.by == "target"} == {
        "region": 1.0,
        "occupation": 1.0,
    }


def test_version_one_has_no_targets(source: Source) -> None:
    scores = run(make("detection", source, input="text"), {})
    assert not [s for s in scores if s.by == "target"]
    assert find(scores, "macro_f1").value == 0.0


def test_type_table(source: Source) -> None:
    task = make("type", source, input="text", labels="v2")
    said = {"1": "E", "2": "E", "3": "E", "4": "B", "5": "A", "6": "B", "7": "B", "8": "B"}
    scores = run(task, said | {"9": "E"})  # meme 10 has no valid answer
    expected = {
        "none": 6 / 8,  # 3 found, 1 false claim, 1 missed
        "targeted": 2 / 3,
        "offence": 4 / 6,  # 2 found, 2 false claims
        "sexual": 0.0,
        "dispirited": 0.0,
    }
    by_type = {s.label: s.value for s in scores if (s.key, s.by) == ("f1", "type")}
    assert by_type == pytest.approx(expected)
    assert find(scores, "macro_f1").value == pytest.approx(sum(expected.values()) / 5)
    precision, recall = (3 / 4 + 1 + 2 / 4) / 5, (3 / 4 + 1 / 2 + 1) / 5
    assert find(scores, "macro_precision").value == pytest.approx(precision)
    assert find(scores, "macro_recall").value == pytest.approx(recall)
    assert find(scores, "accuracy", "target", "region").value == 1.0
    assert find(scores, "accuracy", "modality", "fusion").n == 2


def test_target_table(source: Source) -> None:
    task = make("target", source, input="text")
    assert [item.gold for item in task.items()] == ["region", "occupation"]
    scores = run(task, {"5": "地域", "6": "性别"})
    by_target = {s.label: s.value for s in scores if s.by == "target"}
    assert by_target == {"gender": 0.0, "region": 1.0, "occupation": 0.0}
    assert find(scores, "macro_f1").value == pytest.approx(1 / 3)
    everyone = make("target", source, input="text", memes="all")
    assert sum(item.gold == "none" for item in everyone.items()) == 8
    answers = {str(number): "没有针对谁" for number in range(1, 11)}
    assert find(run(everyone, answers), "accuracy").value == 0.8


def test_the_harmful_meme_without_a_type_is_not_asked_for_one(tmp_path: Path) -> None:
    source = write_release(tmp_path / "odd", "train")
    path = source.root / NAMES["v2", "train"]
    rows = json.loads(path.read_text(encoding="utf-8"))
    rows[0] |= {"path": "7630.jpg", "label": 1, "type": 0}
    path.write_text(json.dumps(rows), encoding="utf-8")
    asked = {"split": "train", "labels": "v2", "input": "text"}
    assert [i.id for i in make("type", source, **asked).items()] == ["21"]
    gold = {i.id: i.gold for i in make("detection", source, **asked).items()}
    assert gold == {"7630": "harmful", "21": "harmful"}


def test_a_repeated_question_says_what_was_wrong(source: Source) -> None:
    task = make("detection", source, input="text", language="en")
    item = next(task.items())
    text = str(task.ask(item, "no known label found").messages[0].parts[0])
    assert text.endswith("harmful, harmless")
    assert "no known label found" in text


def test_without_data_or_with_unknown_options_it_says_so(source: Source) -> None:
    with pytest.raises(DataError, match="the task has no data to run on"):
        list(make("type", None).items())
    with pytest.raises(UnknownName):
        make("target", source, labels="v1")
    with pytest.raises(DataError, match="split test are not in this copy"):
        list(make("type", write_release(source.root / "half", "train"), input="text").items())


def test_test_is_the_split_where_there_is_one(source: Source, shell: Shell) -> None:
    assert module.pick_split(source) == "test"
    half = write_release(shell.folder / "half", "train")
    assert module.pick_split(half) == "train"
    assert shell.run("data", "add", "toxicn_mm", half.root).code == 0
    ran = shell.run(
        *("run", "toxicn_mm/detection", "--model", "baseline/majority"),
        *("--set", "input=text", "--out", "runs"),
    )
    assert ran.code == 0, ran.err
    assert "split train" in " ".join(ran.out.split())
    asked = ("run", "toxicn_mm/detection", "--model", "baseline/majority", "--split", "test")
    assert "not in this copy" in shell.refused(*asked, "--set", "input=text")


@needs_shared_data
def test_majorities_of_the_official_training_file() -> None:
    source = Source("release", SHARED_DATA / "toxicn_mm")
    for version, harmful in (("v1", 3084), ("v2", 3075)):
        task = make("detection", source, "train", input="text", labels=version)
        items = list(task.items())
        assert len(items) == 9600
        assert sum(item.gold == "harmful" for item in items) == harmful
        scores = task.score([Outcome(item, "answered", "harmless") for item in items])
        rate = (9600 - harmful) / 9600
        assert find(scores, "macro_f1").value == pytest.approx(rate / (1 + rate))
    targets = list(make("target", source, "train", input="text").items())
    types = list(make("type", source, "train", input="text", labels="v2").items())
    assert len(types) == 9599
    assert len(targets) == 777


FULL = {"wording": "full", "input": "text"}


@pytest.mark.parametrize(("language", "words"), [("zh", "整个社会"), ("en", "society as a whole")])
@pytest.mark.parametrize("name", ["detection", "type"])
def test_the_full_instruction_carries_the_definition(
    name: str, language: str, words: str, tmp_path: Path
) -> None:
    source = write_release(tmp_path, "test")
    task = make_task(make_setup(f"toxicn_mm/{name}", {**FULL, "language": language}, source))
    asked = task.ask(next(task.items()), None).messages[-1].parts[-1]
    assert words in str(asked)
    assert "4." in str(asked)


@pytest.mark.parametrize(
    ("reasons", "reply", "value"),
    [
        ("last", "有害\n它并不是无害的玩笑，而是贬低。", "harmful"),
        ("first", "乍看无害，其实贬低了人。\n结论：有害", "harmful"),
        ("first", "乍看有害。\n结论：\n无害", "harmless"),
        ("first", "说了很多\n无害", "harmless"),
    ],
)
def test_reasons_stand_before_or_after(
    reasons: str, reply: str, value: str, tmp_path: Path
) -> None:
    source = write_release(tmp_path, "test")
    task = make_task(make_setup("toxicn_mm/detection", {**FULL, "reasons": reasons}, source))
    item = next(task.items())
    assert "理由" in str(task.ask(item, None).messages[-1].parts[-1])
    assert task.parse(reply, item.form) == value
    assert task.prompts != make_task(make_setup("toxicn_mm/detection", FULL, source)).prompts


def test_reasons_are_a_step_of_the_full_instruction(tmp_path: Path) -> None:
    source = write_release(tmp_path, "test")
    both = [
        make_task(make_setup("toxicn_mm/detection", {"reasons": "first", **more}, source))
        for more in ({}, {"wording": "full"})
    ]
    assert both[0].prompts == both[1].prompts
