"""The reader of PunMemeCN on small releases of our own, one slip or error at a time."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from memantics.benchmarks.card import read_card
from memantics.benchmarks.published import compare, read_expected
from memantics.benchmarks.punmemecn.load import PunRelease, open_release, repair_turns
from memantics.benchmarks.punmemecn.statistics import statistics, survey
from memantics.core.data import Source
from memantics.core.errors import DataError, UnknownName
from tests.readers.releases import complain

FOLDER = Path(open_release.__code__.co_filename).parent
PUNS = [f"CN9000{n}" for n in range(1, 6)]
TOPICS = ("sports", "entertainment", "technology", "games", "work", "daily")
Data = dict[str, Any]


def votes(*labels: str) -> str:
    return repr({f"annotator_{n}": label for n, label in enumerate(labels, 1)})


def make_meta() -> Data:
    meta: Data = {}
    for number, pun in enumerate(PUNS):
        common = {
            "meme_sentiment": "self-positive",
            "meme_sentiment_annotations": votes(*["self-positive"] * 3),
            "meme_explanation": "画面是一只杯子。\n意思是有空喝茶。",
        }
        chat: Data = dict.fromkeys(TOPICS)
        chat["work"] = f"甲：忙吗？\n乙：刚忙完第{number}件事。\n甲：![表情包]({pun}.png)"
        printed, heard = ("有茶就型", "有茶就行") if number else ("开心果", "开心果")
        meta[f"{pun}.png"] = {
            "meme_type": "pun",
            "caption_1": printed,
            "caption_2": heard,
            **common,
            "meme_chat": chat,
        }
        for role in ("similar_image", "similar_text"):
            meta[f"{pun}.{role}.png"] = {
                "meme_type": "non-pun",
                "caption_1": f"早上好{number}" if role == "similar_image" else heard,
                **common,
            }
    return meta


def make_chats() -> tuple[Data, Data]:
    easy: Data = {}
    hard: Data = {}
    for number, pun in enumerate(PUNS, 1):
        others = [f"{other}.png" for other in PUNS if other != pun]
        story = {
            "topic": "work",
            "chat_history": ["甲：忙吗？", f"乙：刚忙完第{number - 1}件事。", "甲："],
        }
        easy[f"chat_9000{number}"] = {
            **story,
            "meme_response": {
                "correct": f"{pun}.png",
                **{f"wrong(random{n})": others[n - 1] for n in (1, 2, 3)},
            },
        }
        kinds = ("text_sim", "image_sim", "sentiment_sim")
        hard[f"chat_9000{number}"] = {
            **story,
            "meme_response": {
                **{f"wrong_candidates({kind})": repr(others) for kind in kinds},
                "correct": f"{pun}.png",
                **{f"wrong({kind})": others[n] for n, kind in enumerate(kinds)},
            },
        }
    return easy, hard


def write(folder: Path, change: Callable[[Data, Data, Data], object] | None = None) -> Path:
    meta = make_meta()
    easy, hard = make_chats()
    if change is not None:
        change(meta, easy, hard)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in (("_Meta", meta), ("_Chat(easy)", easy), ("_Chat(hard)", hard)):
        text = json.dumps(data, ensure_ascii=False, indent=1)
        (folder / f"{name}.json").write_text(text, encoding="utf-8")
    return folder


def read(root: Path, images: Path | None = None) -> PunRelease:
    return open_release(Source("release", root, images))


def problem(root: Path) -> str:
    return complain(open_release, root)


@pytest.mark.parametrize("place", ["", "cn", "pun_meme/cn", "data/pun_meme/cn"])
def test_every_official_layout_is_recognised(tmp_path: Path, place: str) -> None:
    folder = write(tmp_path / place)
    (folder / "CN90001.png").touch()
    release = read(tmp_path)
    assert len(release.memes) == 15
    assert [m.id for m in release.memes if m.image] == ["CN90001"]
    assert len(release.chats("easy")) == len(release.chats("hard")) == 5
    assert not release.skips
    assert not release.repairs


def test_images_beside_in_a_folder_or_given(tmp_path: Path) -> None:
    write(tmp_path / "data")
    for folder in (tmp_path / "data" / "images", tmp_path / "elsewhere"):
        folder.mkdir()
        (folder / "CN90002.similar_text.png").touch()
        (folder / "CN90003.png").mkdir()
    beside = read(tmp_path / "data").by_id()["CN90002.similar_text"].image
    given_ = read(tmp_path / "data", tmp_path / "elsewhere").by_id()
    assert beside == tmp_path / "data" / "images" / "CN90002.similar_text.png"
    assert given_["CN90002.similar_text"].image is not None
    assert given_["CN90003"].image is None  # a folder is no image
    with pytest.raises(DataError, match="image folder not found"):
        read(tmp_path / "data", tmp_path / "nowhere")


def test_records_carry_what_the_files_say(tmp_path: Path) -> None:
    release = read(write(tmp_path))
    pun, look, told = release.memes[3:6]
    assert (pun.id, pun.group, pun.role, pun.is_pun) == ("CN90002", "CN90002", "pun", True)
    assert (pun.caption, pun.reading, pun.sentiment) == ("有茶就型", "有茶就行", "self-positive")
    assert (look.role, look.reading) == ("similar_image", None)
    assert (told.file, told.caption) == ("CN90002.similar_text.png", "有茶就行")
    chat = release.chats("hard")[0]
    assert chat.turns == ("甲：忙吗？", "乙：刚忙完第0件事。")
    assert (chat.speaker, chat.correct, chat.level) == ("甲", "CN90001", "hard")
    assert chat.distractors[0] == ("text_sim", "CN90002")
    assert chat.candidates["image_sim"] == ("CN90002", "CN90003", "CN90004", "CN90005")
    assert release.chats("easy")[0].candidates == {}
    with pytest.raises(UnknownName, match="level"):
        release.chats("medium")


def test_glued_tag_stray_stop_and_lost_break_are_mended_and_counted(tmp_path: Path) -> None:
    def slip(meta: Data, easy: Data, _hard: Data) -> None:
        easy["chat_90001"]["chat_history"] = ["甲：早", "乙：早。乙："]
        easy["chat_90002"]["chat_history"] = ["甲：早", "。乙：早", "甲："]
        easy["chat_90003"]["chat_history"] = ["甲：早。n乙：早……\b甲：好", "乙："]
        easy["chat_90004"]["chat_history"] = ["甲：早", "好天气", "乙："]
        meta["CN90001.png"]["meme_chat"]["daily"] = "甲：早\n乙：早。乙：![表情包](CN90001.png)"
        del meta["CN90002.png"]["meme_chat"]["sports"]

    release = read(write(tmp_path, slip))
    chats = {chat.id: chat for chat in release.easy}
    assert chats["chat_90001"].turns == ("甲：早", "乙：早。")
    assert chats["chat_90001"].speaker == "乙"
    assert chats["chat_90002"].turns == ("甲：早", "乙：早")
    assert chats["chat_90003"].turns == ("甲：早。", "乙：早……", "甲：好")
    assert chats["chat_90004"].turns == ("甲：早\n好天气",)
    assert dict(release.repairs) == {
        "_Meta.json: last speaker tags attached to the turn before": 1,
        "_Meta.json: topics without a chat are absent instead of null": 1,
        "_Chat(easy).json: last speaker tags attached to the turn before": 1,
        "_Chat(easy).json: turns that began with a stray full stop": 1,
        "_Chat(easy).json: turns joined by a lost line break": 2,
        "_Chat(easy).json: lines without a speaker joined to the turn before": 1,
    }


@given(st.lists(st.from_regex(r"[甲乙]：[a-z]{1,5}", fullmatch=True), min_size=1, max_size=6))
def test_clean_turns_stay_as_they_are(turns: list[str]) -> None:
    repaired = repair_turns([*turns, "乙："])
    assert (repaired.turns, repaired.speaker, dict(repaired.repairs)) == (tuple(turns), "乙", {})


@given(st.lists(st.text(max_size=12), max_size=5))
def test_any_history_is_mended_or_refused_with_a_reason(lines: list[str]) -> None:
    try:
        repaired = repair_turns(lines)
    except ValueError as error:
        reason = str(error)
    else:
        reason = repaired.speaker
        assert all(turn[:2] in ("甲：", "乙：") for turn in repaired.turns)
    assert reason


def test_a_chat_with_an_option_outside_this_copy_is_a_listed_skip(tmp_path: Path) -> None:
    def point_outside(_meta: Data, easy: Data, hard: Data) -> None:
        easy["chat_90004"]["meme_response"]["wrong(random2)"] = "CN00642.png"
        hard["chat_90001"]["meme_response"]["wrong_candidates(text_sim)"] = "['CN00642.png']"

    release = read(write(tmp_path, point_outside))
    assert [(s.file, s.row, s.reason) for s in release.skips] == [
        ("_Chat(easy).json", "chat_90004", "not in this copy: CN00642.png")
    ]
    assert len(release.easy) == 4
    assert len(release.hard) == 5  # a list of candidates may reach outside
    assert survey(release).skips == release.skips


def test_a_wrong_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    text = problem(tmp_path)
    assert "_Meta.json" in text
    assert "data/pun_meme/cn/_Meta.json" in text
    assert "clone" in text
    assert "_Meta.json" in problem(tmp_path / "nowhere")


def test_corrupt_json_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path) / "_Meta.json"
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[6] = lines[6][:-2]
    path.write_text("\n".join(lines), encoding="utf-8")
    text = problem(tmp_path)
    assert text.startswith("_Meta.json: not valid JSON")
    assert "line 7" in text or "line 8" in text


@pytest.mark.parametrize("content", ["{}", "[]", "3", "null"])
@pytest.mark.parametrize("name", ["_Meta.json", "_Chat(hard).json"])
def test_no_records_or_another_shape_is_refused(tmp_path: Path, name: str, content: str) -> None:
    (write(tmp_path) / name).write_text(content, encoding="utf-8")
    assert problem(tmp_path).startswith((f"{name}: is not", f"{name}: contains no"))


def test_a_key_that_comes_twice_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path) / "_Chat(easy).json"
    text = path.read_text(encoding="utf-8").replace("chat_90002", "chat_90001")
    path.write_text(text, encoding="utf-8")
    assert problem(tmp_path) == "_Chat(easy).json: row chat_90001: the key appears 2 times"


def test_json_nested_to_harm_is_refused(tmp_path: Path) -> None:
    deep = "[" * 1010 + "]" * 1010
    (write(tmp_path) / "_Meta.json").write_text(f'{{"CN90001.png": {deep}}}')
    assert problem(tmp_path).startswith("_Meta.json: ")


def meta_row(key: str, **change: object) -> Callable[[Data, Data, Data], object]:
    return lambda meta, _easy, _hard: meta[key].update(change)


def hard_options(**change: object) -> Callable[[Data, Data, Data], object]:
    names = {f"wrong({name})" if "_" in name else name: value for name, value in change.items()}
    return lambda _m, _e, hard: hard["chat_90001"]["meme_response"].update(names)


def hard_candidates(value: object) -> Callable[[Data, Data, Data], object]:
    change = {"wrong_candidates(text_sim)": value}
    return lambda _m, _e, hard: hard["chat_90001"]["meme_response"].update(change)


def rename(old: str, new: str) -> Callable[[Data, Data, Data], object]:
    return lambda meta, _e, _h: meta.update({new: meta.pop(old)})


PUN, LOOK = "CN90002.png", "CN90002.similar_image.png"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (meta_row(PUN, mood="odd"), "row CN90002.png: mood: unknown field"),
        (lambda m, _e, _h: m[PUN].pop("caption_2"), "row CN90002.png: caption_2: missing field"),
        (meta_row(PUN, meme_type="non-pun"), "row CN90002.png: meme_type:"),
        (meta_row(LOOK, meme_type="pun"), "row CN90002.similar_image.png: meme_type:"),
        (meta_row(PUN, caption_1=""), "caption_1:"),
        (meta_row(PUN, caption_1=5), "caption_1:"),
        (meta_row(PUN, meme_sentiment="self-angry"), "meme_sentiment 'self-angry'"),
        (meta_row(PUN, meme_sentiment_annotations=votes("self-odd") * 1), "annotator_1"),
        (
            meta_row(PUN, meme_sentiment_annotations=votes("x-y", "x-y", "x-y")),
            "vote 'x-y' is not a valid target-type label",
        ),
        (meta_row(PUN, meme_sentiment_annotations="__import__('os')"), "plain Python literal"),
        (meta_row(PUN, meme_sentiment_annotations="[" * 5000), "plain Python literal"),
        (meta_row(PUN, meme_sentiment_annotations="-" * 4000 + "1"), "plain Python literal"),
        (meta_row(PUN, meme_sentiment_annotations="{'a\\d': 1}"), "plain Python literal"),
        (meta_row(PUN, meme_chat={"weather": None}), "meme_chat.weather"),
        (meta_row(PUN, meme_chat={"work": "甲：早\n乙：晚"}), "does not end in its meme"),
        (lambda m, _e, _h: m.pop(LOOK), "row CN90002: the group has no similar_image meme"),
        (
            rename(LOOK, "../../CN90002.png"),
            "'../../CN90002.png' is not a valid name: CN, five digits",
        ),
        (rename(LOOK, "CN1.png"), "'CN1.png' is not"),
        (hard_options(correct="../CN90001.png"), "row chat_90001: '../CN90001.png' is not"),
        (hard_options(correct=LOOK), "option CN90002.similar_image.png is not a pun meme"),
        (hard_options(correct="CN90003.png"), "the four options are not four different memes"),
        (hard_options(odd_sim="CN90003.png"), "meme_response.wrong(odd_sim): unknown field"),
        (hard_candidates("['CN90002.png', 3]"), "not a list of file names"),
        (hard_candidates("{'CN90002.png': 1}"), "not a list of file names"),
        (hard_candidates("open('x')"), "plain Python literal"),
        (lambda _m, e, _h: e["chat_90001"].update(topic="opera"), "row chat_90001: topic:"),
        (lambda _m, e, _h: e["chat_90001"].update(chat_history=["早"]), "chat_history:"),
        (lambda _m, e, _h: e["chat_90001"].update(chat_history=[]), "chat_history:"),
        (
            lambda _m, e, _h: e.update({"../chat": e["chat_90001"]}),
            "row ../chat: is not a valid chat id",
        ),
    ],
)
def test_what_no_release_has_is_refused_by_file_and_key(
    tmp_path: Path, change: Callable[[Data, Data, Data], object], expected: str
) -> None:
    text = problem(write(tmp_path, change))
    assert text.startswith(("_Meta.json: row ", "_Chat(easy).json: row ", "_Chat(hard).json: row "))
    assert expected in text


def test_the_survey_counts_and_says_what_is_missing(tmp_path: Path) -> None:
    folder = write(tmp_path)
    for name in ("CN90001.png", "CN90002.png"):
        (folder / name).touch()
    first = survey(read(folder))
    assert first.records == 15
    assert (first.images_found, first.images_expected) == (2, 15)
    assert first.counts["hard chats"] == 5
    assert json.loads(json.dumps(asdict(first)))["records"] == 15
    assert any("13 of 15 images" in note for note in first.notes)
    (folder / "_Chat(hard).json").unlink()
    second = survey(read(folder))
    assert second.files == ("_Meta.json", "_Chat(easy).json")
    assert second.checksum != first.checksum
    assert any("_Chat(hard).json is not in this copy" in note for note in second.notes)


def test_statistics_of_a_release_that_can_be_counted_by_hand(tmp_path: Path) -> None:
    def vary(meta: Data, _easy: Data, _hard: Data) -> None:
        ways = votes("self-positive", "other-negative", "both-neutral")
        meta["CN90001.png"]["meme_sentiment_annotations"] = ways
        most = votes("self-positive", "self-negative", "self-positive")
        meta["CN90002.png"]["meme_sentiment_annotations"] = most
        meta["CN90003.png"]["meme_chat"]["work"] = None
        meta["CN90003.png"]["caption_2"] = "有茶就行了"
        meta["CN90004.png"]["caption_2"] = "有他就行"

    found = statistics(read(write(tmp_path, vary)))
    told: dict[str, JsonValue] = {
        "memes.total": 15,
        "memes.non_pun": 10,
        "sentiment.target.self.share": 100.0,
        "agreement.sentiment.all.count": 13,
        "agreement.sentiment.all": 86.67,
        "agreement.sentiment.pun": 60.0,
        "human.target": 86.67,
        "human.type": 80.0,
        "human.overall": 80.0,
        "votes.majority.overruled": 0,
        "votes.three_ways.pun": 1,
        "puns.polysemy": 1,
        "puns.homophone": 4,
        "puns.homophone.exact": 2,
        "puns.homophone.fuzzy": 1,
        "puns.homophone.length": 1,
        "captions.length.pun": 3.8,
        "captions.pun_and_not": 1,
        "captions.bound.f1": 0.909,
        "chats.total": 4,
        "chats.per_pun.0": 1,
        "chats.per_pun.1": 4,
        "chats.turns.max": 3,
        "chats.topic.work": 4,
        "chats.hard.drawn_from_lists": 5,
        "chats.levels.different": 0,
        "agreement.punchline": None,
    }
    assert {key: found[key] for key in told} == told


def test_every_metric_is_declared_and_every_declaration_answered(tmp_path: Path) -> None:
    expected = read_expected(FOLDER / "expected" / "statistics.json")
    found = statistics(read(write(tmp_path)))
    assert {row.key for row in expected} == found.keys()
    assert len(expected) == len(found)
    assert {row.key: row.verdict for row in compare(expected, found)}["chats.perplexity"] == (
        "not recomputable"
    )


def test_the_card_is_valid() -> None:
    assert read_card(FOLDER / "card.toml").find_task("detection").main == "f1"
