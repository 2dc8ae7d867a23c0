"""The MemeIntent reader: layouts, repairs, errors, and the part beside the checkout."""

from __future__ import annotations

import json
import statistics as plain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.benchmarks.memeintent.load import IntentRelease, open_release, repair_text
from memantics.benchmarks.memeintent.statistics import statistics, survey
from memantics.benchmarks.published import read_expected
from memantics.benchmarks.registry import find_benchmarks
from memantics.core.data import Source
from memantics.core.errors import InputError
from tests.places import SHARED_DATA, needs_shared_data
from tests.readers.releases import complain, write_rows

SHARED = SHARED_DATA / "memeintent"


def entry(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "img": f"{number}_image.png",
        "text": "mondays again",
        "image_caption": "a sleepy cat",
        "bks": "* a week begins on monday\n* cats sleep a lot",
        "intents": ["the meme complains about mondays"],
    } | changes


def write(root: Path, rows: object, name: str = "sigdial.json") -> Path:
    return write_rows(root, rows, name)


def opened(root: Path, images: Path | None = None) -> IntentRelease:
    return open_release(Source("release", root, images))


def complaint(root: Path) -> str:
    return complain(open_release, root)


@pytest.mark.parametrize("name", ["sigdial.json", "data/sigdial.json"])
def test_every_layout_is_recognised(tmp_path: Path, name: str) -> None:
    write(tmp_path, {"1": entry(1), "64": entry(64, img="7_image_batch_2.png")}, name)
    write(tmp_path, {"1": {"img": "the short file is not read"}}, "sigdial_30.json")
    (tmp_path / "images").mkdir()
    (tmp_path / "images" / "7_image_batch_2.png").touch()
    first, second = opened(tmp_path).memes()
    assert (first.id, first.file, first.split, first.image) == ("1", "1_image.png", "dev", None)
    assert first.background == ("a week begins on monday", "cats sleep a lot")
    assert first.intents == ("the meme complains about mondays",)
    assert (second.split, second.image) == ("train", tmp_path / "images" / "7_image_batch_2.png")


def test_given_image_folder_and_sample_keys(tmp_path: Path) -> None:
    write(tmp_path / "release", {"en-001": entry(img="en-001.png")})
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "en-001.png").touch()
    (row,) = opened(tmp_path / "release", tmp_path / "own").memes()
    assert row.image == tmp_path / "own" / "en-001.png"


def test_splits_follow_the_key_ranges(tmp_path: Path) -> None:
    rows = {str(key): entry(key) for key in (1, 63, 64, 750, 751, 950)}
    release = opened(write(tmp_path, rows))
    assert [row.id for row in release.memes("dev")] == ["1", "63"]
    assert [row.id for row in release.memes("train")] == ["64", "750"]
    assert [row.id for row in release.memes("test")] == ["751", "950"]
    with pytest.raises(InputError, match="unknown split 'valid'"):
        release.memes("valid")


def test_split_that_is_not_here_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="this copy contains no meme of split test"):
        opened(write(tmp_path, {"1": entry()})).memes("test")


def test_wrongly_decoded_text_is_repaired_and_counted(tmp_path: Path) -> None:
    broken = "it’s monday…".encode().decode("mac_roman")
    rows = {"1": entry(1, text=broken), "2": entry(2, text="naïve café", image_caption=broken)}
    release = opened(write(tmp_path, rows))
    assert [row.text for row in release.rows] == ["it’s monday…", "naïve café"]
    assert release.rows[1].image_caption == broken
    assert survey(release).repairs["texts with wrongly decoded characters"] == 1


@given(st.text(st.characters(codec="utf-8"), max_size=30))
def test_repair_undoes_the_mistake(text: str) -> None:
    assert repair_text(text.encode().decode("mac_roman")) == text


@given(st.text(st.characters(codec="ascii"), max_size=30))
def test_repair_leaves_plain_text_alone(text: str) -> None:
    assert repair_text(text) == text


def test_placeholder_means_no_background(tmp_path: Path) -> None:
    release = opened(write(tmp_path, {"1": entry(1, bks="* "), "2": entry(2)}))
    assert [len(row.background) for row in release.rows] == [0, 2]
    got = statistics(release)
    assert (got["background.none"], got["background.lines"]) == (1, 3)
    assert (got["background.mean"], got["background.placeholder.mean"]) == (1.0, 1.5)
    assert survey(release).repairs == {"empty background placeholders": 1}


def test_wrong_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    assert "none of these files was found: sigdial.json, data/sigdial.json" in complaint(tmp_path)


def test_corrupt_json_names_the_line(tmp_path: Path) -> None:
    write(tmp_path, {"1": entry()})
    path = tmp_path / "sigdial.json"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:6], "oops", *lines[7:]]))
    text = complaint(tmp_path)
    assert "sigdial.json: not valid JSON" in text
    assert "line 7" in text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"text": ""}, "field 'text'"),
        ({"intents": []}, "field 'intents'"),
        ({"intents": "the meme is one text"}, "field 'intents'"),
        ({"intents": ["complains"]}, "does not begin with 'the meme '"),
        ({"intents": ["the meme is"] * 2}, "an intent appears twice"),
        ({"bks": "no bullet"}, "background 'no bullet' does not begin with '* '"),
        ({"img": "../7.png"}, "points outside its folder"),
        ({"img": ".."}, "points outside its folder"),
        ({"img": "1_image.png"}, "image 1_image.png already belongs to row 1"),
    ],
)
def test_broken_rows_are_named(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    rows = {str(number): entry(number) for number in range(1, 8)}
    rows["7"] |= changes
    text = complaint(write(tmp_path, rows))
    assert text.startswith("sigdial.json: row 7: ")
    assert problem in text


def test_missing_field_is_named(tmp_path: Path) -> None:
    own = entry()
    del own["bks"]
    assert "row 1: missing field 'bks'" in complaint(write(tmp_path, {"1": own}))


def test_strange_keys_are_refused(tmp_path: Path) -> None:
    assert "letters, digits" in complaint(write(tmp_path, {"../1": entry()}))


def test_repeated_keys_are_refused(tmp_path: Path) -> None:
    one, two = json.dumps(entry(1)), json.dumps(entry(2))
    (tmp_path / "sigdial.json").write_text(f'{{"5": {one}, "5": {two}}}')
    assert "row 5: the key appears twice" in complaint(tmp_path)


@pytest.mark.parametrize(("rows", "problem"), [({}, "contains no meme"), ([], "a JSON object")])
def test_empty_and_misshapen_files(tmp_path: Path, rows: object, problem: str) -> None:
    assert problem in complaint(write(tmp_path, rows))


def test_survey_explains_missing_images(tmp_path: Path) -> None:
    found = survey(opened(write(tmp_path, {"1": entry(1), "2": entry(2)})))
    assert (found.records, found.images_found, found.images_expected) == (2, 0, 2)
    assert any("SemEval-2021 Task 6" in note for note in found.notes)
    assert any("2 of the release's 950" in note for note in found.notes)


@needs_shared_data
def test_shared_part() -> None:
    rows = json.loads((SHARED / "sigdial.json").read_bytes())
    release = opened(SHARED)
    got = statistics(release)
    intents = [intent for row in rows.values() for intent in row["intents"]]
    words = [len(intent.split()) - 2 for intent in intents]
    bullets = [
        sum(bool(line.strip("* ")) for line in row["bks"].splitlines()) for row in rows.values()
    ]
    assert got["memes"] == len(rows) == 500
    assert got["intents.total"] == len(intents)
    assert got["words.mean"] == round(plain.fmean(words), 3)
    assert got["words.sd"] == round(plain.pstdev(words), 3)
    assert got["background.total"] == sum(bullets)
    assert got["background.mean"] == round(plain.fmean(bullets), 3)
    parts = {
        split: [len(row.background) for row in release.rows if row.split == split]
        for split in ("dev", "train")
    }
    for split, counts in parts.items():
        assert got[f"background.mean.{split}"] == round(plain.fmean(counts), 3)
    assert sum(map(sum, parts.values())) == got["background.total"]
    assert got["background.mean.test"] is None, "this part holds no test memes"
    assert got["background.none"] == sum(row["bks"] == "* " for row in rows.values())
    assert got["text.repaired"] == sum("‚Ä" in row["text"] for row in rows.values())
    assert (got["split.dev"], got["split.train"], got["split.test"]) == (63, 437, 0)
    assert not any("‚Ä" in row.text for row in release.rows)


def test_only_the_papers_own_definitions_stand_beside_its_metrics() -> None:
    """Alternative definitions are ours: they are shown, and never compared with the paper."""
    rows = {
        row.key: row
        for row in read_expected(
            find_benchmarks()["memeintent"].folder / "expected/statistics.json"
        )
    }
    ours = ["words.sd_sample", "words.with_prefix.mean", "words.with_prefix.sd"]
    ours += ("background.placeholder.mean", "background.placeholder.sd", "background.present.mean")
    assert [rows[key].paper for key in ours] == [None] * 6
    assert {key: rows[key].paper for key in ("words.mean", "words.sd", "background.mean")} == {
        "words.mean": 10.6,
        "words.sd": 4.8,
        "background.mean": 1.7,
    }
