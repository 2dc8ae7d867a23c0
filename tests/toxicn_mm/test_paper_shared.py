"""ToxiCN MM's paper on the development part, with fake models and tiny trained ones."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest
from PIL import Image as Pillow

from memantics.construction.queues import make_error_queue, make_questionnaire
from memantics.core.rundir import read_facts
from memantics.evaluation.paper import paper
from tests.commands import Shell
from tests.construction.publish.queues import judge, make_queue, pick_memes
from tests.construction.publish.test_publish import label
from tests.moderation.neural.conftest import Make, encoder, plain_arithmetic
from tests.places import SHARED_DATA, needs_shared_data
from tests.report.test_papers_filled import rate, rename

__all__ = ["encoder", "plain_arithmetic"]
INPUTS = {
    "gpt-3.5-turbo": ("text",),
    "gpt-4-vision-preview": ("text", "image_text"),
    "visualglm-6b": ("image_text",),
    "Qwen-VL-Chat": ("image_text",),
    "VisCPM-Chat": ("image_text",),
}


def draw_pictures(folder: Path, most: int = 8) -> Path:
    """Pictures for some memes of every type and modality: the part holds none."""
    folder.mkdir()
    rows = json.loads(
        (SHARED_DATA / "toxicn_mm" / "train_data_discription.json").read_text("utf-8")
    )
    taken: dict[tuple[object, ...], int] = {}
    for row in rows:
        kind = tuple(row[key] for key in ("label", "type", "modality") if key in row)
        taken[kind] = taken.get(kind, 0) + 1
        if taken[kind] <= most:
            number = Path(row["new_path"]).stem
            shade = int(number) % 256
            Pillow.new("RGB", (24, 20), (shade, 255 - shade, 90)).save(folder / f"{number}.jpg")
    return folder


@pytest.mark.slow
@needs_shared_data
def test_on_the_development_part_no_cell_is_left_to_fill(
    encoder: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only 'closed' cells have no value: quotations, and what a part of the release lacks."""
    shell = Shell(tmp_path)
    images = draw_pictures(tmp_path / "pictures")
    shell.done("data", "add", "toxicn_mm", SHARED_DATA / "toxicn_mm", "--images", images)
    folders = [
        word
        for kind in ("text", "image", "resnet", "clip")
        for word in (f"--{kind}-backbone", encoder(kind))
    ]
    shell.done(
        *("detector", "study", "paper", "ridge", "--data", "toxicn_mm", *folders),
        *("--seeds", "0,1", "--epochs", "1", "--rate", "3e-3", "--hold-out", "random"),
    )  # fmt: skip
    told = shell.done(
        *("run", "toxicn_mm/detection", "toxicn_mm/type", "-m", "fake/keys", "--sample", "40"),
        *("--set", "input=text,image_text", "--set", "images=present", "--set", "wording=full"),
        "--json",
    )
    asked = [tmp_path / str(own["folder"]) for own in json.loads(told)]
    runs = [
        rename(shutil.copytree(run, tmp_path / name / run.name), f"openai/{name}")
        for name, inputs in INPUTS.items()
        for run in asked
        if read_facts(run).options["input"] in inputs
    ]
    assert len(runs) == 12
    memes = pick_memes("zh", 20)
    votes = make_queue(tmp_path / "votes", "label-by-vote", memes)
    judge(votes, "label-by-vote", {meme.id: label(meme) for meme in memes})
    said = {"consent": "yes", "gender": "female", "age": "20_to_30", "region": "asian"}
    people = rate(make_questionnaire(tmp_path / "people", 2).folder, dict(said), "ask")
    errors = rate(
        make_error_queue(runs[:1], tmp_path / "errors").folder, {"error": "culture"}, "code"
    )
    monkeypatch.setenv("MEMANTICS_HOME", str(shell.home))
    sheet = paper(
        "toxicn_mm", runs, detectors=tmp_path / "study", annotations=[votes, people, errors]
    )
    assert "a part of the release's 12,000 (not compared with the paper)" in sheet.about[0]
    rows = list(csv.DictReader(io.StringIO(sheet.render("csv"))))
    assert not [row for row in rows if row["status"] == "empty"]
    assert {row["status"] for row in rows} == {"computed", "closed"}
    closed = {row["part"]: row["reason"] for row in rows if row["status"] == "closed"}
    assert all(closed.values())
    assert closed["Table 1"].startswith("Quoted")
    assert closed["Table 3"] == "This copy is a part of the release and lacks this split."
    cells = {(row["part"], row["row"], row["column"]): row for row in rows}
    assert cells["Table 1", "ToxiCN MM", "Size"]["value"] == "9600"
    trained = cells["Table 5", "CLIP + MKE, fine-tuned", "F1"]
    assert trained["sd"]
    assert "over 2 seeds" in trained["note"]
    assert cells["Table 5", "ridge", "F1 (type)"]["value"]
    assert cells["Label versions", "Tg.", "harmless"]["status"] == "computed"
    page = sheet.save(tmp_path / "paper.html").read_text(encoding="utf-8")
    assert ">command 1<" not in page
    assert "prediction: " in page
    assert "clip+both ✓" in page or "clip+both ✗" in page
