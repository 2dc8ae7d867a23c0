"""The MER-Bench reader: layouts, quoted captions, errors, and the part beside the checkout."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memantics.benchmarks.mer_bench.load import ReappraisalRelease, open_release, unwrap
from memantics.benchmarks.mer_bench.statistics import statistics, survey
from memantics.core.data import Source
from tests.places import SHARED_DATA, needs_shared_data
from tests.readers.releases import complain, write_rows

SHARED = SHARED_DATA / "mer_bench"


def entry(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "id": f"{number}.png",
        "det_emo": "sad",
        "img_desc": "Visual cues: a wet cat.\n\nText cues: it rains.",
        "pos_txt": '"it is a fine day for ducks"',
        "spec": "give the cat an umbrella",
        "tgt_emo": "happy",
        "gen_id": f"{number}.png",
        "text": "it rains\n",
        "visual_type": "Cartoon_Anime",
        "sentiment_polarity": "Negative",
        "layout_type": "SinglePanel_Meme",
    } | changes


def write(root: Path, rows: object, name: str = "index_final.json") -> Path:
    return write_rows(root, rows, name)


def opened(root: Path, images: Path | None = None) -> ReappraisalRelease:
    return open_release(Source("release", root, images))


def complaint(root: Path) -> str:
    return complain(open_release, root)


@pytest.mark.parametrize(
    ("name", "folder"),
    [("data/index_final.json", "data/Original"), ("index_final.json", "images")],
)
def test_every_layout_is_recognised(tmp_path: Path, name: str, folder: str) -> None:
    write(tmp_path, [entry(1), entry(2, layout_type="MultiPanel_Meme")], name)
    (tmp_path / folder).mkdir(parents=True)
    (tmp_path / folder / "2.png").touch()
    first, second = opened(tmp_path).rows
    assert (first.id, first.source_emotion, first.target_emotion) == ("1.png", "sad", "happy")
    assert first.rewritten == "it is a fine day for ducks"
    assert (first.caption, first.plan) == ("it rains", "give the cat an umbrella")
    assert (first.layout, second.layout) == ("SinglePanel", "MultiPanel")
    assert (first.image, second.image) == (None, tmp_path / folder / "2.png")


def test_given_image_folder_comes_first(tmp_path: Path) -> None:
    write(tmp_path / "release", [entry(1)])
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "1.png").touch()
    (row,) = opened(tmp_path / "release", tmp_path / "own").rows
    assert row.image == tmp_path / "own" / "1.png"


def test_sample_ids_and_short_layout_names_are_read(tmp_path: Path) -> None:
    own = entry(id="en-001.png", gen_id="en-001.png", layout_type="MultiPanel")
    (row,) = opened(write(tmp_path, [own])).rows
    assert (row.id, row.layout) == ("en-001.png", "MultiPanel")


@pytest.mark.parametrize(
    ("text", "want"),
    [
        ("plain", "plain"),
        ('"wrapped"', "wrapped"),
        (json.dumps(json.dumps(json.dumps("three times"))), "three times"),
        ('"wrapped",', "wrapped"),
        (' "wrapped" \n', "wrapped"),
        ('"never closed', "never closed"),
        ('never opened"', "never opened"),
        ('"closed wrongly“', "closed wrongly"),
        ("“curly”", "curly"),
        (': "after a colon"', "after a colon"),
        ('"spec": "after its name"', "after its name"),
        ('"the caption",\n  "spec": "the plan"', "the plan"),
        ('"she says "hello" to me"', 'she says "hello" to me'),
        ('"broken\nline"', "broken\nline"),
        ('"' + "\\" * 16 + '"hi' + "\\" * 16 + '" ' + "\\" * 16 + 'nyou"', '"hi" \nyou'),
        ('"it' + "\\" * 16 + 'u2019s fine"', "it’s fine"),
        ('"shrug: ¯\\_"', "shrug: ¯\\_"),
        ('he "quotes"', 'he "quotes"'),
        ('"quoted" he said', '"quoted" he said'),
        ("", ""),
        ('"', ""),
        ('""', ""),
    ],
)
def test_unwrap(text: str, want: str) -> None:
    assert unwrap(text) == want


CLEAN = st.text(st.characters(codec="utf-8", exclude_characters='"“”\\:,'), max_size=40)


@given(CLEAN.map(str.strip), st.integers(0, 4))
def test_unwrap_undoes_any_wrapping(text: str, times: int) -> None:
    wrapped = text
    for _ in range(times):
        wrapped = json.dumps(wrapped)
    assert unwrap(wrapped) == text


@given(st.text(max_size=60))
def test_unwrap_takes_anything(text: str) -> None:
    assert isinstance(unwrap(text), str)


def test_wrong_folder_says_what_was_looked_for(tmp_path: Path) -> None:
    text = complaint(tmp_path)
    assert "data/index_final.json, index_final.json" in text
    assert "clone" in text


def test_corrupt_json_names_the_line(tmp_path: Path) -> None:
    write(tmp_path, [entry(1)])
    path = tmp_path / "index_final.json"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([*lines[:6], "oops", *lines[7:]]))
    text = complaint(tmp_path)
    assert "index_final.json: not valid JSON" in text
    assert "line 7" in text


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"colour": "red"}, "unknown field 'colour'"),
        ({"det_emo": "sleepy"}, "field 'det_emo'"),
        ({"tgt_emo": "calm"}, "sad must be paired with happy, not with calm"),
        ({"visual_type": "Painting"}, "field 'visual_type'"),
        ({"sentiment_polarity": "negative"}, "field 'sentiment_polarity'"),
        ({"layout_type": "Spiral"}, "field 'layout_type'"),
        ({"text": None}, "field 'text'"),
        ({"id": "../7.png", "gen_id": "../7.png"}, "is not a plain file name that ends in .png"),
        ({"gen_id": "8.png"}, "gen_id '8.png' differs from id 7.png"),
        ({"id": "1.png", "gen_id": "1.png"}, "id 1.png appears twice"),
    ],
)
def test_broken_rows_are_named(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    rows = [entry(number) for number in range(1, 8)]
    rows[6] |= changes
    text = complaint(write(tmp_path, rows))
    assert text.startswith("index_final.json: row 7: ")
    assert problem in text


def test_missing_field_is_named(tmp_path: Path) -> None:
    own = entry(1)
    del own["spec"]
    assert "row 1: missing field 'spec'" in complaint(write(tmp_path, [own]))


@pytest.mark.parametrize(
    ("rows", "problem"), [([], "contains no meme"), ({}, "is not a JSON array of memes")]
)
def test_empty_and_misshapen_files(tmp_path: Path, rows: object, problem: str) -> None:
    assert problem in complaint(write(tmp_path, rows))


def test_survey_counts_repairs_and_explains(tmp_path: Path) -> None:
    rows = [entry(1), entry(2, pos_txt="plain", text=" \n"), entry(3, spec='"wrapped"')]
    found = survey(opened(write(tmp_path, rows)))
    assert (found.records, found.counts["memes without text"]) == (3, 1)
    assert found.repairs == {"rewritten captions unwrapped": 2, "edit plans unwrapped": 1}
    assert (found.images_found, found.images_expected) == (0, 3)
    assert any("data/Original" in note for note in found.notes)
    assert any("data/EditedResults" in note for note in found.notes)


def test_kept_memes_need_every_file(tmp_path: Path) -> None:
    write(tmp_path, [entry(1), entry(2), entry(3)], "data/index_final.json")
    assert statistics(opened(tmp_path))["kept"] is None
    for place in (
        "Original/1.png",
        "Original/2.png",
        "EditedResults/a/1.png",
        "EditedResults/a/2.png",
        "EditedResults/a/3.png",
        "EditedResults/b/1.png",
    ):
        path = tmp_path / "data" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    release = opened(tmp_path)
    assert release.editors() == ("a", "b")
    assert release.find_edited("b", release.rows[1]) is None
    assert statistics(release)["kept"] == 1


@needs_shared_data
def test_shared_part() -> None:
    rows = json.loads((SHARED / "index_final.json").read_bytes())
    release = opened(SHARED)
    got = statistics(release)
    assert got["memes"] == len(rows) == 1500
    for prefix, key in (
        ("visual_type", "visual_type"),
        ("polarity", "sentiment_polarity"),
        ("layout", "layout_type"),
    ):
        for name, count in Counter(row[key].removesuffix("_Meme") for row in rows).items():
            assert got[f"{prefix}.{name}"] == count
    pairs = Counter(f"emotion.{row['det_emo']}_{row['tgt_emo']}" for row in rows)
    assert all(got[key] == count for key, count in pairs.items())
    crossed = Counter((row["visual_type"], row["layout_type"][:-5]) for row in rows)
    assert all(got[f"visual_layout.{a}.{b}"] == count for (a, b), count in crossed.items())
    assert got["pos_txt.wrapped"] == sum(row["pos_txt"][0] == '"' for row in rows)
    assert got["text.empty"] == sum(row["text"] == "" for row in rows)
    assert got["pos_txt.most_backslashes"] == max(row["pos_txt"].count("\\") for row in rows)


@needs_shared_data
def test_shared_captions_come_out_clean() -> None:
    release = opened(SHARED)
    for row in release.rows:
        assert row.rewritten
        assert "\\" not in row.rewritten + row.plan
        assert not row.plan.startswith('"')
        assert not row.plan.endswith(('"', '",'))
    assert not survey(release).skips
