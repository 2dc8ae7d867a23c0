"""Every command that writes images marks them, and copies by other commands keep the marks."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from memantics.core.data import Source
from memantics.core.marks import ImageMark, read_mark, write_mark
from memantics.core.samples import image_path
from memantics.core.stamping import ImageStamp, Making, MarkSettings, open_stamp
from memantics.evaluation.datasets import add_release
from tests.commands import Shell
from tests.kinder import PLANNER
from tests.marks.reading import AI, check_files, read_manifest
from tests.marks.signers import write_chain
from tests.mer_bench.samples import write_release
from tests.reappraisal.test_whole import edit_all

pytestmark = pytest.mark.slow

MARKED = ImageMark("trainedAlgorithmicMedia", "a program", "painter/x")


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A folder with a plain meme, a marked one and a signed one, and a certificate."""
    made = Shell(tmp_path_factory.mktemp("marks"))
    (made.folder / "memes").mkdir()
    (made.folder / "marked").mkdir()
    shutil.copy(image_path("en-012"), made.folder / "memes")
    plain = image_path("en-001").read_bytes()
    (made.folder / "marked" / "marked.png").write_bytes(write_mark(plain, MARKED))
    stamp = open_stamp(MarkSettings(sign=write_chain(made.folder)))
    other = image_path("en-012").read_bytes()
    signed = stamp.apply(other, Making("composite"))
    (made.folder / "marked" / "signed.png").write_bytes(signed)
    return made


def find_images(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.png"))


def test_reappraise(shell: Shell) -> None:
    shell.run("reappraise", "memes/en-012.png", *PLANNER, "--versions", "2", "--label",
              "--out", "kinder", "--sign", "chain.pem", "key.pem")  # fmt: skip
    files = find_images(shell.folder / "kinder")
    assert len(files) >= 4
    check_files(files, AI)
    for file in files:
        (parent,) = read_manifest(file.read_bytes())["ingredients"]
        assert (parent["title"], parent["relationship"]) == ("en-012.png", "parentOf")


def test_a_certificate_that_cannot_sign_is_refused_before_any_work(shell: Shell) -> None:
    said = shell.refused("reappraise", "memes", "--sign", "key.pem", "chain.pem", "--out", "no")
    assert "not a certificate in PEM format" in said
    assert not (shell.folder / "no").exists()


def test_edit_with_captions_only(shell: Shell) -> None:
    shell.run("edit", "mer_bench", "--editor", "embedded", "--mode", "masked", "--limit", "1",
              "--out", "edited", "--sign", "chain.pem", "key.pem")  # fmt: skip
    files = find_images(shell.folder / "edited" / "EditedResults" / "embedded")
    check_files(files, "composite")
    for file in files:
        assert read_manifest(file.read_bytes())["ingredients"]


def test_edit_by_a_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    source: Source = write_release(tmp_path / "release", 2, ())
    add_release("mer_bench", source.root)
    done = asyncio.run(edit_all(source.root, []))
    files = find_images(done.folder)
    assert len(files) == 2
    check_files(files, AI)
    mark = read_mark(files[0].read_bytes())
    assert mark is not None
    assert mark.system == "openai-images/painter"


def test_minimal_pairs(shell: Shell) -> None:
    shell.done("build", "pairs", "memes", "--count", "2", "--language", "en", "--out", "pairs",
               "--sign", "chain.pem", "key.pem", "--label")  # fmt: skip
    files = find_images(shell.folder / "pairs" / "images")
    check_files(files, "composite")
    for file in files:
        (parent,) = read_manifest(file.read_bytes())["ingredients"]
        assert parent["title"] == "en-012.png"


def test_drafts_of_reappraisals(shell: Shell) -> None:
    shell.run("build", "reappraisal", "memes", *PLANNER, "--editor", "embedded", "--out", "drafts")
    check_files(find_images(shell.folder / "drafts" / "reappraised"), AI)
    check_files(find_images(shell.folder / "drafts" / "queue" / "edited"), AI)


def test_analyze_shows_marks_and_credentials(shell: Shell) -> None:
    said = json.loads(shell.done("analyze", "marked/marked.png", "marked/signed.png", "--json"))
    listed = said["analyses"] if isinstance(said, dict) else said
    shown = [{sight["part"]: sight["says"] for sight in one["shows"]} for one in listed]
    assert shown[0]["mark"] == MARKED.describe()
    assert "content credentials" not in shown[0]
    assert shown[1]["content credentials"].startswith("signature intact, signer not verified")
    assert "A signer" in shell.done("analyze", "marked/signed.png")


def test_screen_shows_marks_and_its_review_copies_keep_them(shell: Shell) -> None:
    shell.run(
        "screen", "marked", "--review-range", "0..1", "--out", "screened", "--save", "imagefolder"
    )
    rows = [
        row
        for part in sorted((shell.folder / "screened" / "parts").glob("*.parquet"))
        for row in pq.read_table(part).to_pylist()
    ]
    told = {Path(row["id"]).stem: row["credentials"] for row in rows}
    assert told["marked"] == f"mark: {MARKED.describe()}"
    assert "signature intact" in told["signed"]
    copies = [read_mark(file.read_bytes()) for file in find_images(shell.folder / "screened")]
    assert MARKED in copies


def test_collect_keeps_marks(shell: Shell) -> None:
    shell.done("collect", "marked", "--out", "collected")
    before = {file.read_bytes() for file in find_images(shell.folder / "marked")}
    assert {file.read_bytes() for file in find_images(shell.folder / "collected")} <= before
    assert find_images(shell.folder / "collected")


def test_pages_keep_marks(shell: Shell) -> None:
    shell.done("analyze", "marked/marked.png", "--out", "page.html")
    page = (shell.folder / "page.html").read_text(encoding="utf-8")
    (picture,) = re.findall(r"data:image/webp;base64,([A-Za-z0-9+/=]+)", page)
    assert read_mark(base64.b64decode(picture)) == MARKED
    assert ImageStamp().identity
