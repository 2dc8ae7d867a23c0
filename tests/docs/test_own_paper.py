"""From ten images to a paper's page, by the documented script, offline."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from memantics.core.samples import image_path
from tests.commands import Shell
from tests.construction.publish.queues import pick_memes
from tests.construction.publish.test_publish import label
from tests.places import ROOT

pytestmark = pytest.mark.slow

FIELDS = ("id", "harmful", "type", "modality", "target")


def test_ten_images_become_a_benchmark_a_detector_and_a_page(tmp_path: Path) -> None:
    chosen = [one for one in pick_memes("zh", 200) if one.harm.harmful][:5]
    chosen += [each for each in pick_memes("zh", 200) if not each.harm.harmful][:5]
    (tmp_path / "memes").mkdir()
    with (tmp_path / "labels.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, FIELDS)
        writer.writeheader()
        for meme in chosen:
            shutil.copy(image_path(meme.id), tmp_path / "memes" / meme.file)
            writer.writerow({"id": Path(meme.file).stem, **label(meme)})
    shell = Shell(tmp_path)
    bin_folder = tmp_path / "bin"
    bin_folder.mkdir()
    for name, words in (("memantics", " -m memantics"), ("python", "")):
        command = bin_folder / name
        command.write_text(f'#!/bin/sh\nexec "{sys.executable}"{words} "$@"\n', encoding="utf-8")
        command.chmod(0o755)
    environment = shell.environment | {"PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}"}
    script = ROOT / "examples" / "reproduce_paper" / "own_paper.sh"
    ran = subprocess.run(
        ["bash", str(script), "memes", "labels.csv"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=600,
    )
    assert ran.returncode == 0, f"{ran.stdout[-3000:]}{ran.stderr[-3000:]}"
    steps = [line for line in ran.stdout.splitlines() if line.startswith("== ")]
    assert [line[3] for line in steps] == list("123456789"), "the script says what it does"
    data = tmp_path / "published" / "own_harm" / "data"
    parts = [
        json.loads((data / f"{part}_data_discription_2.0.json").read_text(encoding="utf-8"))
        for part in ("train", "test")
    ]
    assert [len(own) for own in parts] == [8, 2]
    lines = (tmp_path / "memes" / "annotations.jsonl").read_text(encoding="utf-8").splitlines()
    votes = [json.loads(line) for line in lines]
    assert {len(vote["annotations"]) for vote in votes} == {3}
    assert (tmp_path / "own_harm.zip").is_file()
    assert (tmp_path / "own_harm-audit.html").is_file()
    page = (tmp_path / "own_harm-paper.html").read_text(encoding="utf-8")
    for words in ("Table 5", "embedded/reader", "ridge → linear", "Appendix B.3"):
        assert words in page
    runs = sorted((tmp_path / "runs").iterdir())
    assert len(runs) == 4, "two models on two tasks"
    told = shell.done(
        *("paper", "own_harm", *map(str, runs), "--detectors", "study"),
        *("--detectors", "own_harm.zip", "--annotations", "memes", "--annotations", "people"),
        *("--format", "csv"),
    )
    rows = csv.DictReader(io.StringIO(told))
    cells = {(row["part"], row["row"], row["column"]): row["value"] for row in rows}
    assert [cells["Table 3", own, "Total"] for own in ("Train", "Test", "Total")] == [
        "8",
        "2",
        "10",
    ]
    kinds = sum(int(cells["Table 4", own, "Total"]) for own in ("Tg.", "Off.", "Sex.", "Disp."))
    assert str(kinds) == cells["Table 3", "Total", "Harm."] == "5"
    assert cells["Table B7", "Total", "Num"]
    assert (cells["Table 2", "female", "people"], cells["Table 2", "male", "people"]) == ("2", "1")
    assert float(cells["Appendix B.3", "harmful", "kappa"]) < 1
    for model in ("fake/keys", "embedded/reader", "linear"):
        assert cells["Table 5", model, "F1"], model
    assert cells["Table 5", "fast detector, preset ridge (held out inside training)", "F1"]
