"""Collecting a folder: resumable, nothing deleted, hostile files are results."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memantics.construction.collect.gather import Collected, CollectSettings
from memantics.construction.collect.gather import gather as collect
from memantics.construction.collect.rules import RuleSet
from memantics.core.errors import DataError, StoreError
from memantics.core.memes import read_memes
from tests.construction.collect.pictures import ScriptedReader, draw, save, write_bomb


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "memes"
    for seed in range(4):
        save(draw(seed), place / f"m{seed}.png")
    return place


def run(folder: Path, reader: ScriptedReader, **how: Any) -> Collected:
    return collect(folder, lambda: reader, CollectSettings(**how))


def lines(folder: Path) -> dict[str, dict[str, Any]]:
    rows = [json.loads(line) for line in (folder / "memes.jsonl").read_text().splitlines()]
    return {row["id"]: row for row in rows}


def test_what_comes_out_is_what_later_commands_read(folder: Path) -> None:
    done = run(folder, ScriptedReader({"m1.png": "", "m2.png": "今晚又失眠了"}))
    assert done.counts == {"kept": 3, "text": 1}
    kept = read_memes(folder)
    assert [meme.id for meme in kept] == ["m0", "m2", "m3"]
    assert kept[1].text == "今晚又失眠了"
    assert kept[1].language == "zh"
    row = lines(folder)["m1"]
    assert row["rule"] == "text"
    assert "letters" in row["reason"]
    assert len(row["hash"]) == 16
    assert json.loads((folder / "collect" / "report.json").read_text())["counts"]["kept"] == 3


def test_copies_are_dropped_and_siblings_kept(folder: Path) -> None:
    save(draw(0).resize((120, 120)), folder / "copy.jpg", quality=70)
    save(draw(0).resize((200, 200)), folder / "sibling.png")
    reader = ScriptedReader({"sibling.png": "quite another thing to say"})
    done = run(folder, reader)
    rows = lines(folder)
    assert rows["copy"]["rule"] == "duplicate"
    assert rows["copy"]["copy_of"] == "m0"
    assert rows["sibling"]["kept"]
    assert rows["sibling"]["template_cluster"] == rows["m0"]["template_cluster"] != ""
    assert done.template_clusters == 1


def test_nothing_is_deleted_or_changed(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    run(folder, ScriptedReader({"m1.png": ""}))
    after = {path.name: path.read_bytes() for path in folder.iterdir() if path.name in before}
    assert after == before


def test_a_second_run_reads_nothing_and_writes_the_same(folder: Path) -> None:
    reader = ScriptedReader({"m1.png": ""})
    run(folder, reader)
    first = (folder / "memes.jsonl").read_bytes()
    assert len(reader.asked) == 4
    again = run(folder, reader)
    assert len(reader.asked) == 4
    assert again.fresh == 0
    assert (folder / "memes.jsonl").read_bytes() == first
    stricter = run(folder, reader, rules=RuleSet(thresholds={"meaning": 99}))
    assert len(reader.asked) == 4
    assert stricter.counts["meaning"] == 3


def test_a_run_that_was_killed_goes_on_where_it_stopped(folder: Path) -> None:
    class Killed(Exception):
        pass

    class Mortal(ScriptedReader):
        def read(self, data: bytes, name: str) -> Any:
            if len(self.asked) == 2:
                raise Killed
            return super().read(data, name)

    mortal = Mortal()
    with pytest.raises(Killed):
        run(folder, mortal)
    call_log = folder / "collect" / "looks.jsonl"
    call_log.write_bytes(call_log.read_bytes() + b'{"sha256": "cut of')
    reader = ScriptedReader()
    done = run(folder, reader)
    assert reader.asked == ["m2.png", "m3.png"]
    assert done.counts == {"kept": 4}


def test_another_version_of_the_reader_reads_again(folder: Path) -> None:
    run(folder, ScriptedReader())
    newer = ScriptedReader(version="scripted-2")
    run(folder, newer)
    assert len(newer.asked) == 4


def test_hostile_files_are_results_not_errors(folder: Path) -> None:
    write_bomb(folder / "bomb.png")
    (folder / "text.png").write_text("not an image at all")
    (folder / "empty.jpg").write_bytes(b"")
    cut = save(draw(9), folder / "cut.png")
    cut.write_bytes(cut.read_bytes()[:600])
    (folder / "outside.png").symlink_to("/etc/hostname")
    reader = ScriptedReader()
    done = run(folder, reader)
    rows = lines(folder)
    assert rows["bomb"]["reason"] == "too many pixels"
    assert rows["text"]["reason"] == "format"
    assert rows["cut"]["reason"] == "truncated"
    assert not rows["empty"]["kept"]
    assert "outside" not in rows
    assert done.counts == {"kept": 4, "decode": 4}
    assert not {"bomb.png", "text.png"} & set(reader.asked)


def test_the_same_bytes_under_two_names_are_read_once(folder: Path) -> None:
    (folder / "again.png").write_bytes((folder / "m0.png").read_bytes())
    reader = ScriptedReader()
    run(folder, reader)
    assert len(reader.asked) == 4
    rows = lines(folder)
    assert {rows["again"]["kept"], rows["m0"]["kept"]} == {True, False}


def test_what_a_person_gave_is_kept_and_comes_out_again(folder: Path) -> None:
    given = {
        "id": "mine",
        "image": "m0.png",
        "text": "given by hand",
        "language": "eo",
        "notes": {"meaning": "a test"},
        "licence": "CC0",
    }
    gone = {"id": "gone", "image": "m1.png", "kept": False}
    (folder / "memes.jsonl").write_text(f"{json.dumps(given)}\n{json.dumps(gone)}\n")
    for _ in range(2):
        run(folder, ScriptedReader({"m0.png": "misread"}))
        rows = lines(folder)
        assert rows["mine"]["text"] == "given by hand"
        assert rows["mine"]["language"] == "eo"
        assert rows["mine"]["licence"] == "CC0"
        assert rows["mine"]["notes"] == {"meaning": "a test"}
        assert rows["mine"]["kept"]
        assert list(rows) == ["mine", "gone", "m2", "m3"]
    assert not rows["gone"]["kept"]


def test_what_a_person_mends_is_taken_at_their_word(folder: Path) -> None:
    run(folder, ScriptedReader({"m0.png": "misraed words here", "m1.png": ""}))
    rows = lines(folder)
    rows["m0"]["text"] = "misread words here"
    rows["m1"]["kept"] = True
    rows["m2"]["kept"] = False
    rows["m3"]["language"] = "nl"
    text = "".join(json.dumps(row) + "\n" for row in rows.values())
    (folder / "memes.jsonl").write_text(text)
    for _ in range(2):
        done = run(folder, ScriptedReader())
        rows = lines(folder)
        assert rows["m0"]["text"] == "misread words here"
        assert rows["m1"]["kept"]
        assert rows["m2"]["rule"] == "person"
        assert rows["m3"]["language"] == "nl"
        assert done.counts == {"kept": 3, "person": 1}


def test_out_takes_copies_and_leaves_the_folder_alone(folder: Path, tmp_path: Path) -> None:
    save(draw(7), folder / "deep" / "er" / "odd name (1).png")
    out = tmp_path / "out"
    run(folder, ScriptedReader({"m1.png": ""}), out=out)
    assert not (folder / "memes.jsonl").exists()
    memes = read_memes(out)
    assert [meme.id for meme in memes] == ["m0", "m2", "m3", "deep-er-odd_name_1"]
    assert all(meme.image.is_file() for meme in memes)
    assert not (out / "images" / "m1.png").exists()
    rows = lines(out)
    rows["m1"] |= {"kept": True, "text": "a person read this here"}
    (out / "memes.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows.values()))
    done = run(folder, ScriptedReader({"m1.png": ""}), out=out)
    assert done.fresh == 0
    assert list(lines(out)) == list(rows)
    assert lines(out)["m1"]["text"] == "a person read this here"
    assert (out / "images" / "m1.png").is_file()


@pytest.mark.parametrize("damage", ["replaced", "torn"])
def test_a_copy_that_is_no_copy_any_more_is_made_again(
    folder: Path, tmp_path: Path, damage: str
) -> None:
    """The image was replaced by its owner since, or a kill left half of the copy behind."""
    out = tmp_path / "out"
    run(folder, ScriptedReader({}), out=out)
    copy = out / "images" / "m0.png"
    if damage == "replaced":
        save(draw(9), folder / "m0.png")
    else:
        copy.write_bytes(copy.read_bytes()[:50])
    run(folder, ScriptedReader({}), out=out)
    assert copy.read_bytes() == (folder / "m0.png").read_bytes()


def test_an_out_folder_below_the_images_is_not_collected_again(folder: Path) -> None:
    for _ in range(2):
        done = run(folder, ScriptedReader(), out=folder / "kept")
        assert done.counts == {"kept": 4}


def test_several_processes_find_the_same(folder: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    collect(folder, ScriptedReader, CollectSettings(out=one))
    collect(folder, ScriptedReader, CollectSettings(out=two, workers=2))
    assert (one / "memes.jsonl").read_bytes() == (two / "memes.jsonl").read_bytes()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda folder: [path.unlink() for path in folder.iterdir()], "contains no images"),
        (
            lambda folder: (folder / "memes.jsonl").write_text('{"id": "a", "image": "../x.png"}'),
            "points outside",
        ),
        (lambda folder: (folder / "memes.jsonl").write_text("{"), "not valid JSON"),
    ],
)
def test_a_folder_that_cannot_be_used_is_one_line(
    folder: Path, spoil: Callable[[Path], object], message: str
) -> None:
    spoil(folder)
    with pytest.raises(DataError, match=message):
        run(folder, ScriptedReader())


def test_a_damaged_call_log_names_its_line(folder: Path) -> None:
    run(folder, ScriptedReader())
    call_log = folder / "collect" / "looks.jsonl"
    call_log.write_bytes(b"{}\n" + call_log.read_bytes())
    with pytest.raises(StoreError, match=r"line 1 is damaged"):
        run(folder, ScriptedReader())


@pytest.mark.parametrize("beside", [True, False])
def test_a_name_that_is_not_utf8_loses_nothing_else(folder: Path, beside: bool) -> None:
    """A list beside the images cannot name such a file; copies get a name of their own."""
    save(draw(9), folder / os.fsdecode(b"photo\xff.png"))
    out = folder if beside else folder.parent / "out"
    reader = ScriptedReader({})
    for _ in range(2):  # the second time from the list that the first wrote
        done = run(folder, reader, out=None if beside else out)
        assert done.counts == ({"kept": 4, "decode": 1} if beside else {"kept": 5})
        row = lines(out)["photo_udcff"]
        assert row["collected"]["file"] == "photo\\udcff.png"
        assert ("rename the file" in row["reason"]) is beside
        assert len(read_memes(out)) == 4 + (not beside)
    assert (out / "images" / "photo_udcff.png").is_file() is not beside
