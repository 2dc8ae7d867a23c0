"""The reader of ToxiCN MM on small releases of our own, one slip or error at a time."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import JsonValue

from memantics.benchmarks.card import read_card
from memantics.benchmarks.published import compare, read_expected
from memantics.benchmarks.registry import find_benchmark
from memantics.benchmarks.toxicn_mm import statistics as audit
from memantics.benchmarks.toxicn_mm.load import NAMES, TARGETS, HarmRelease, open_release
from memantics.benchmarks.toxicn_mm.statistics import statistics, survey
from memantics.core.data import Source
from memantics.core.errors import DataError, UnknownName
from memantics.metrics.grouping import find_near_duplicates
from tests.places import ROOT
from tests.readers.releases import complain

FOLDER = Path(open_release.__code__.co_filename).parent
Rows = dict[str, list[Any]]
Change = Callable[[Rows], object]
TRAIN_1, TEST_1 = NAMES["v1", "train"], NAMES["v1", "test"]
TRAIN_2, TEST_2 = NAMES["v2", "train"], NAMES["v2", "test"]

# id, label, type id, text flag, image flag, target code
TRAIN = [
    (1, 0, 0, 0, 0, 0),
    (2, 1, 1, 0, 0, 13),
    (3, 1, 2, 0, 1, 0),
    (5, 1, 3, 1, 0, 0),
    (6, 1, 3, 1, 1, 0),
    (7, 1, 4, 1, 0, 0),
    (8, 0, 0, 0, 0, 0),
    (10, 0, 0, 0, 0, 0),
]
TEST = [(4, 1, 1, 1, 0, 5), (9, 0, 0, 0, 0, 0)]


def words(number: int) -> dict[str, str]:
    return {
        "text": f"今天下雨第{number}天，伞呢",
        "meme_discription": "一把蓝色的伞",
        "text_discription": "一句抱怨天气的话",
    }


def first(number: int, label: int, type_: int, text: int, image: int, _target: int) -> Any:
    code = {(0, 0): 1, (1, 0): 2, (0, 1): 3, (1, 1): 4}[text, image] if label else 0
    return {
        "new_path": f"{number}.jpg",
        "label": label,
        "type": type_,
        "modal": [text, image],
        "new_label": [1 - label, label],
        "new_type": [int(type_ == n) for n in range(5)],
        "new_modal": code,
        **words(number),
    }


def second(number: int, label: int, type_: int, text: int, image: int, target: int) -> Any:
    return {
        "path": f"{number}.jpg",
        **words(number),
        "label": label,
        "type": type_,
        "text_modal": text,
        "image_modal": image,
        "target": target,
    }


def write(folder: Path, change: Change | None = None, *, book: bool = True) -> Path:
    rows: Rows = {
        TRAIN_1: [first(*row) for row in TRAIN],
        TEST_1: [first(*row) for row in TEST],
        TRAIN_2: [second(*row) for row in TRAIN],
        TEST_2: [second(*row) for row in TEST],
    }
    if change is not None:
        change(rows)
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in rows.items():
        text = json.dumps(data, ensure_ascii=False, indent=1)
        (folder / name).write_text(text, encoding="utf-8")
    if book:
        lines = ["ID,Category,Num", *(f"{n},{name},0" for n, name in enumerate(TARGETS, 1))]
        (folder / "target_info.csv").write_text("\r\n".join([*lines, "Null,None,0"]))
    return folder


def read(root: Path, images: Path | None = None) -> HarmRelease:
    return open_release(Source("release", root, images))


def problem(root: Path) -> str:
    return complain(open_release, root)


@pytest.mark.parametrize("place", ["", "data", "ToxiCN_MM/data"])
def test_every_official_layout_is_recognised(tmp_path: Path, place: str) -> None:
    write(tmp_path / place)
    release = read(tmp_path)
    assert {key: len(memes) for key, memes in release.parts.items()} == {
        ("v1", "train"): 8,
        ("v1", "test"): 2,
        ("v2", "train"): 8,
        ("v2", "test"): 2,
    }
    assert not release.repairs


def test_class_ids_get_their_own_names_not_the_order_of_the_tables(tmp_path: Path) -> None:
    memes = {meme.id: meme for meme in read(write(tmp_path)).memes("v1")}
    assert [memes[str(n)].type for n in (1, 2, 3, 5, 7)] == [
        "none",
        "targeted",
        "sexual",
        "offence",
        "dispirited",
    ]


def test_two_flags_off_mean_harmless_or_fusion_by_the_label(tmp_path: Path) -> None:
    release = read(write(tmp_path))
    for version in ("v1", "v2"):
        memes = {meme.id: meme for meme in release.memes(version, "train")}
        assert [memes[str(n)].modality for n in (1, 2, 3, 5, 6)] == [
            None,
            "fusion",
            "image",
            "text",
            "both",
        ]


def test_only_the_second_version_has_targets(tmp_path: Path) -> None:
    release = read(write(tmp_path))
    assert {meme.target for meme in release.memes("v1")} == {None}
    assert [m.target for m in release.memes("v2") if m.target] == ["relationship", "age"]
    assert [m.split for m in release.memes("v2", "test")] == ["test", "test"]


def test_records_carry_what_the_files_say(tmp_path: Path) -> None:
    meme = read(write(tmp_path)).memes("v2", "test")[0]
    assert (meme.id, meme.text, meme.harmful) == ("4", "今天下雨第4天，伞呢", True)
    assert meme.text_caption == "一句抱怨天气的话"
    assert meme.image_caption == "一把蓝色的伞"


def test_images_are_found_by_either_extension(tmp_path: Path) -> None:
    images = tmp_path / "pictures"
    images.mkdir()
    for name in ("1.jpg", "2.png", "3.txt"):
        (images / name).touch()
    release = read(write(tmp_path / "data"), images)
    assert [m.image for m in release.memes("v1") if m.image] == [images / "1.jpg", images / "2.png"]
    images.rename(tmp_path / "data" / "images")
    assert sum(m.image is not None for m in read(tmp_path).memes("v1")) == 2
    with pytest.raises(DataError, match="image folder not found"):
        read(tmp_path, images)


def test_a_copy_may_hold_one_version_and_one_split_only(tmp_path: Path) -> None:
    folder = write(tmp_path, book=False)
    for name in (TRAIN_1, TEST_1, TEST_2):
        (folder / name).unlink()
    release = read(folder)
    assert release.versions == ("v2",)
    assert len(release.memes("v2")) == 8
    with pytest.raises(DataError, match=r"labels v1, split test are not in this copy; add test_"):
        release.memes("v1", "test")
    with pytest.raises(UnknownName, match="label version"):
        release.memes("v3")
    with pytest.raises(UnknownName, match="split"):
        release.memes("v2", "dev")
    found = survey(release)
    assert found.files == (TRAIN_2,)
    assert json.loads(json.dumps(asdict(found)))["records"] == 8
    assert any("version v1 are not in this copy" in note for note in found.notes)
    assert any("v2 have no test split" in note for note in found.notes)
    assert any("This copy contains no images" in note for note in found.notes)
    numbers = statistics(release)
    assert numbers["table3.v2.train.harmful"] == 5
    assert numbers["table3.v2.total.harmful"] is None
    assert numbers["table3.v1.train.harmful"] is None


def test_the_known_meme_without_a_type_is_kept_and_counted(tmp_path: Path) -> None:
    release = read(write(tmp_path, lambda r: r[TRAIN_2].append(second(7630, 1, 0, 0, 0, 0))))
    odd = release.memes("v2", "train")[-1]
    assert (odd.harmful, odd.type, odd.modality) == (True, "none", "fusion")
    assert list(release.repairs.values()) == [1]
    assert "7630.jpg" in next(iter(release.repairs))
    assert statistics(release)["harmful.without_type.v2.train"] == 1


def test_one_hot_copies_that_differ_are_counted(tmp_path: Path) -> None:
    release = read(write(tmp_path, lambda r: r[TRAIN_1][2].update(new_modal=2)))
    assert release.memes("v1", "train")[2].modality == "image"
    assert list(release.repairs.values()) == [1]


def test_a_wrong_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    text = problem(tmp_path)
    assert all(name in text for name in NAMES.values())
    assert "clone" in text


def test_corrupt_json_is_one_line_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path) / TEST_2
    lines = path.read_text(encoding="utf-8").splitlines()
    lines[6] = lines[6].replace(":", "")
    path.write_text("\n".join(lines), encoding="utf-8")
    assert problem(tmp_path).startswith(f"{TEST_2}: not valid JSON")
    assert "line 7" in problem(tmp_path)


@pytest.mark.parametrize("content", ["[]", "{}", "null"])
def test_no_records_or_another_shape_is_refused(tmp_path: Path, content: str) -> None:
    (write(tmp_path) / TRAIN_1).write_text(content)
    assert problem(tmp_path).startswith((f"{TRAIN_1}: is not", f"{TRAIN_1}: contains no"))


def row(name: str, number: int, **change: object) -> Change:
    return lambda rows: rows[name][number - 1].update(change)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (row(TRAIN_1, 7, mood=1), f"{TRAIN_1}: row 7: mood: unknown field"),
        (lambda r: r[TRAIN_1][6].pop("modal"), f"{TRAIN_1}: row 7: modal: missing field"),
        (row(TRAIN_2, 3, type=5), f"{TRAIN_2}: row 3: type: Input should be less than"),
        (row(TRAIN_1, 3, type=-1), f"{TRAIN_1}: row 3: type: Input should be greater than"),
        (row(TEST_1, 1, label=2), f"{TEST_1}: row 1: label:"),
        (row(TEST_1, 1, label=True), f"{TEST_1}: row 1: label:"),
        (row(TEST_1, 1, modal=[1]), f"{TEST_1}: row 1: modal:"),
        (row(TEST_2, 2, target=16), f"{TEST_2}: row 2: target:"),
        (row(TEST_2, 2, text=""), f"{TEST_2}: row 2: text:"),
        (row(TEST_2, 2, type=3), f"{TEST_2}: row 2: label 0 does not match type offence"),
        (row(TRAIN_2, 2, type=0), f"{TRAIN_2}: row 2: label 1 does not match type none"),
        (row(TRAIN_1, 2, new_path="1.jpg"), f"{TRAIN_1}: row 2: meme 1 appears twice"),
        (row(TEST_1, 2, new_path="8.jpg"), f"{TEST_1}: row 2: meme 8 is also in {TRAIN_1}"),
        (row(TEST_1, 2, new_path="../8.jpg"), f"{TEST_1}: row 2: '../8.jpg' is not a plain"),
        (row(TEST_1, 2, new_path="8.exe"), f"{TEST_1}: row 2: '8.exe' is not a plain"),
        (lambda r: r[TRAIN_2].insert(0, 3), f"{TRAIN_2}: row 1: "),
        (lambda r: r.update({TRAIN_2: r[TRAIN_1]}), f"{TRAIN_2}: row 1: "),
    ],
)
def test_what_no_release_has_is_refused_by_file_and_row(
    tmp_path: Path, change: Change, expected: str
) -> None:
    assert problem(write(tmp_path, change)).startswith(expected)


def test_a_code_book_with_other_codes_is_refused(tmp_path: Path) -> None:
    (write(tmp_path) / "target_info.csv").write_text("ID,Category,Num\n1,Gender,2\n")
    assert problem(tmp_path).startswith("target_info.csv: has 1 target codes")
    (tmp_path / "target_info.csv").write_bytes(b"\xff\xfe\x00")
    assert problem(tmp_path).startswith("target_info.csv: cannot be read")


def test_statistics_of_a_release_that_can_be_counted_by_hand(tmp_path: Path) -> None:
    def vary(rows: Rows) -> None:
        rows[TRAIN_2][1].update(type=3, target=0, text_modal=1)
        rows[TRAIN_2][5].update(label=0, type=0, text_modal=0)
        for name in (TEST_1, TEST_2):
            rows[name][0]["text"] = rows[TRAIN_1][0]["text"]

    found = statistics(read(write(tmp_path, vary)))
    told: dict[str, JsonValue] = {
        "table3.v1.total.memes": 10,
        "table3.v1.total.harmful": 6,
        "table3.v1.train.offence": 2,
        "table3.v1.train.sexual": 1,
        "table3.v1.train.modality.fusion": 1,
        "table3.v1.train.modality.text": 3,
        "table3.v1.train.modality.image": 2,
        "table3.v1.train.modality.both": 1,
        "table3.v2.train.harmful": 4,
        "table4.v1.train.offence.text": 2,
        "table4.v1.train.offence.image": 1,
        "table4.v1.total.targeted.text": 1,
        "targets.v2.total.age": 1,
        "targets.v2.total.any": 1,
        "tableB7.age": 1,
        "tableB7.total": 1,
        "versions.label.total": 1,
        "versions.type.train": 2,
        "versions.modality.train": 2,
        "versions.text.total": 0,
        "versions.targeted_without_target.total": 1,
        "harmful.share.v1": 60.0,
        "ids.first": 1,
        "ids.last": 10,
        "ids.gaps": 0,
        "leakage.text.exact": 1,
        # All our texts differ by a digit, so every one has a neighbour.
        "leakage.text.near": 2,
        "leakage.text.near.share": 100.0,
        "versions.type.targeted.offence": 1,
        "versions.type.dispirited.none": 1,
        "versions.type.none.none": 4,
        "table4.v2.train.offence.text": 3,
        "agreement.type": None,
    }
    assert {key: found[key] for key in told} == told


def test_statistics_and_audit_mean_the_same_by_a_leaked_text(tmp_path: Path) -> None:
    """Texts as they were released: white space at the ends makes two texts of one."""

    def vary(rows: Rows) -> None:
        for name in (TEST_1, TEST_2):
            rows[name][0]["text"] = rows[TRAIN_1][0]["text"]
            rows[name][1]["text"] = rows[TRAIN_1][1]["text"] + " "

    release = read(write(tmp_path, vary))
    numbers = statistics(release)
    [found] = audit.across(release)
    identical, near = found.rows
    assert (numbers["leakage.text.exact"], identical.value) == (1, 0.5)
    assert (numbers["leakage.text.near.share"], near.value) == (100.0, 1.0)
    assert found.score.n == 2
    assert audit.across(audit.narrow(release, "test")) == ()
    assert {split for _, split in audit.narrow(release, "test").parts} == {"test"}
    assert audit.narrow(release, "all") is release


def test_the_page_tells_the_metrics_of_the_statistics() -> None:
    """Near-duplicates had three values once: in statistics, audit and docs it is one."""
    page = (ROOT / "docs" / "benchmarks" / "toxicn_mm.md").read_text(encoding="utf-8")
    rows = {own.key: own.known for own in find_benchmark("toxicn_mm").expect()}
    near, share, same = (rows[f"leakage.text.{name}"] for name in ("near", "near.share", "exact"))
    assert f"{near} of 2,400 ({share} %)" in page
    assert f"{same} of them identical as released" in page


def test_ids_that_follow_the_label_show_in_the_deciles(tmp_path: Path) -> None:
    def order(rows: Rows) -> None:
        many = [(n, int(n > 90), 3 * int(n > 90), 0, 0, 0) for n in range(1, 101)]
        random.Random(1).shuffle(many)
        rows[TRAIN_1] = [first(*row) for row in many]
        rows.pop(TEST_1)

    found = statistics(read(write(tmp_path, order)))
    assert [found[f"ids.harm_by_decile.{n}"] for n in (1, 9, 10)] == [0.0, 0.0, 1.0]
    assert (found["ids.harm_by_decile.min"], found["ids.harm_by_decile.max"]) == (0.0, 1.0)


@settings(max_examples=60)
@given(
    st.lists(st.text("abcdefgh", max_size=8), max_size=8),
    st.lists(st.text("abcdefgh", max_size=8), max_size=8),
    st.sampled_from([0.5, 0.6, 0.8, 1.0]),
)
def test_near_duplicates_equal_comparing_every_pair(
    texts: list[str], others: list[str], threshold: float
) -> None:
    def near(a: str, b: str) -> bool:
        union = set(a) | set(b)
        return bool(union) and len(set(a) & set(b)) >= threshold * len(union) - 1e-9

    slow = sum(any(near(text, other) for other in others) for text in texts)
    found = find_near_duplicates(texts, others, threshold)
    assert sum(place is not None for place in found) == slow


def test_every_metric_is_declared_and_every_declaration_answered(tmp_path: Path) -> None:
    expected = read_expected(FOLDER / "expected" / "statistics.json")
    found = statistics(read(write(tmp_path)))
    assert {row.key for row in expected} == found.keys()
    assert len(expected) == len(found)
    verdicts = {row.key: row.verdict for row in compare(expected, found)}
    assert verdicts["agreement.harmful"] == "not recomputable"


def test_the_card_is_valid() -> None:
    card = read_card(FOLDER / "card.toml")
    assert [task.name for task in card.task] == ["detection", "type", "target"]
