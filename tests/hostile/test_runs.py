"""Run folders from elsewhere: whatever their lines name and hold, other data stays out of pages."""

from __future__ import annotations

import base64
import os
from dataclasses import replace
from pathlib import Path

import orjson
import pytest
from PIL import Image as Pillow

from memantics.construction.queues import make_error_queue
from memantics.core.errors import DataError, StoreError
from memantics.core.records import Answer, Image, Item, Message, Reply
from memantics.core.registry import find_run_places
from memantics.core.rundir import RunWriter
from memantics.core.samples import IMAGES
from memantics.evaluation.browse import RunFolder
from memantics.evaluation.evaluate import score
from memantics.evaluation.report import report
from tests.commands import Shell
from tests.runs import TEXT, make_facts, pick, write_run

TASK = "memeintent/intent"


def write_foreign(folder: Path, *images: Path) -> Path:
    """A run whose item names these images."""
    with RunWriter(folder, make_facts(TASK, "fake/model", {})) as writer:
        item = Item("1", "1", ["x"], TEXT, images=tuple(map(Image, images)))
        writer.add_item(item, (Message("user", item.images),))
        writer.add_answer(Answer("1", 0, "answered", Reply("x"), "x"))
    score(folder)
    return folder


@pytest.fixture
def private(tmp_path: Path) -> Path:
    path = tmp_path / "private" / "letter.png"
    path.parent.mkdir()
    Pillow.new("RGB", (20, 20), "red").save(path)
    return path


def count_pictures(page: str) -> int:
    return page.count("data:image/webp;base64,")


def test_a_report_embeds_no_image_outside_of_the_data(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    runs = tmp_path / "runs"
    (runs / "inside").mkdir(parents=True)
    beside = runs / "inside" / "meme.png"
    beside.write_bytes(private.read_bytes())
    link = runs / "inside" / "link.png"
    link.symlink_to(private)
    sample = sorted(IMAGES.glob("*.png"))[0]
    folder = write_foreign(runs / "foreign", sample, beside, private, link)
    page = report(folder, tmp_path / "report.html").read_text()
    assert count_pictures(page) == 2
    assert "outside the registered data" in page
    shown = RunFolder(runs)
    sheet = shown.sheet("foreign", "1")
    assert len(sheet.item.images) == 4
    pictures = [shown.picture(image.path) for image in sheet.item.images]
    assert [bool(picture.uri) for picture in pictures] == [True, True, False, False]
    for picture in pictures[:2]:
        assert base64.b64decode(picture.uri.partition(",")[2])


def test_a_gallery_embeds_no_image_outside_of_the_data(
    shell: Shell, private: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    private = private.rename(tmp_path_factory.mktemp("away") / private.name)
    shell.done("run", "mer_bench", "-m", "fake/keys", "--limit", "2")
    (folder,) = (shell.folder / "runs").glob("mer*")
    counts = []
    for target in (None, private):
        items = folder / "items.jsonl"
        if target is not None:
            lines = [orjson.loads(line) for line in items.read_bytes().splitlines()]
            lines[0]["item"]["images"][1]["path"] = str(target)
            items.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))
        shell.done("gallery", folder, "--out", "gallery.html")
        page = (shell.folder / "gallery.html").read_text()
        counts.append(count_pictures(page))
        assert ("outside the registered data" in page) == (target is not None)
    assert counts[1] == counts[0] - 1 > 0


def test_a_log_for_inspect_holds_no_image_outside_of_the_data(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("inspect_ai")
    from memantics.evaluation.inspect_logs import build_log
    from memantics.evaluation.reports.runs import load_runs

    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    folder = write_foreign(tmp_path / "runs" / "foreign", sorted(IMAGES.glob("*.png"))[0], private)
    (run,) = load_runs([folder])
    run = replace(run, facts=replace(run.facts, started="2026-11-17T09:00:00+00:00"))
    (sample,) = build_log(run, {}, find_run_places([folder])).samples or []
    said = sample.input[0].content  # type: ignore[union-attr]
    assert [part.type for part in said] == ["image", "text"]  # type: ignore[union-attr]
    assert said[1].text == "[image letter.png: outside the registered data]"  # type: ignore[union-attr]


def test_a_queue_of_errors_copies_no_image_outside_of_the_data(
    tmp_path: Path, private: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(IMAGES)
    runs = tmp_path / "runs"
    for name, image in (("known", sorted(IMAGES.glob("*.png"))[0]), ("foreign", private)):
        with RunWriter(runs / name, make_facts("mquest/qa", "fake/model", {})) as writer:
            form = pick("A", "B")
            tags = {"dimension": "Scene", "kind": "R"}
            writer.add_item(Item("1", "1", "A", form, images=(Image(image),), tags=tags), ())
            writer.add_answer(Answer("1", 0, "answered", Reply("B"), "B"))
    assert make_error_queue([runs / "known"], tmp_path / "known").items == 1
    with pytest.raises(
        DataError, match=r"letter\.png: the image is outside the registered data folders"
    ):
        make_error_queue([runs / "foreign"], tmp_path / "queue")
    assert not (tmp_path / "queue").exists()


def test_a_damaged_line_breaks_no_page_of_another_run(tmp_path: Path) -> None:
    write_run(tmp_path / "good", TASK, {"1": "a", "2": "b"})
    write_run(tmp_path / "bad", TASK, {"1": "a", "2": "b"})
    for name in ("items.jsonl", "answers.jsonl"):
        file = tmp_path / "bad" / name
        file.write_bytes(file.read_bytes().replace(b'"1"', b'"1",}', 1))
    runs = RunFolder(tmp_path)
    assert [answer.run for answer in runs.sheet("good", "1").answers] == ["good"]
    with pytest.raises(DataError):
        runs.sheet("bad", "1")


@pytest.mark.parametrize("name", ["items.jsonl", "answers.jsonl", "run.json", "scores.json"])
@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_an_odd_file_breaks_no_page_of_another_run(name: str, kind: str, tmp_path: Path) -> None:
    write_run(tmp_path / "good", TASK, {"1": "a", "2": "b"})
    write_run(tmp_path / "bad", TASK, {"1": "a", "2": "b"})
    odd = tmp_path / "bad" / name
    odd.unlink(missing_ok=True)
    if kind == "folder":
        odd.mkdir()
    elif kind == "pipe":
        os.mkfifo(odd)
    else:
        odd.symlink_to("/dev/zero")
    runs = RunFolder(tmp_path)
    assert "good" in [answer.run for answer in runs.sheet("good", "1").answers]
    assert "good" in [row.name for row in runs.list() if row.state != "damaged"]
    if name in ("items.jsonl", "answers.jsonl"):
        with pytest.raises(StoreError, match="cannot be read"):
            runs.items("bad")
