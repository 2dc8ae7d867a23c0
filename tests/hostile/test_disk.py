"""A disk that fills up, on a file system of 20 MB: one line, no scrap, and the rerun completes."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

import pytest

from memantics.actions import build_shards, screen
from memantics.starter import IMAGES
from tests.commands import Ran, Shell
from tests.places import ROOT
from tests.scale.inline import InlineEngine

pytestmark = pytest.mark.slow

ROOM = (0, 8, 40, 150, 600, 2_000)  # KB that are left
SCRAP = re.compile(r".*\.(partial|part|tmp)$|^tmp")
QUEUE = "screen texts.jsonl --out screened --review 0.0..1.0"
DATABASE = f"{QUEUE}; annotate import screened/review --db a.db"
DETECTOR = "detector train --data starter --preset words --out d.zip"
EXPERT = "expert train labels.csv/label --out e.zip"
RUN = "run mquest -m fake/keys --data starter --out runs"
INTENTS = "run memeintent/intent -m fake/drafter --data starter --limit 4 --out runs"
KNOWN = "build knowledge starter -m fake/builder --out built --limit 2"
ASKED = f"{KNOWN}; build questions built -m fake/builder"
DRAFTED = "build intents starter -m fake/drafter --out built --limit 2"
CHATS = "build chats starter -m fake/drafter --out built --limit 2 --per-meme 1"
KINDER = "build reappraisal memes --editor none --limit 1 --out built"
PUBLISHED = f"{KINDER}; publish built --name kinder --licence CC0-1.0 --unreviewed"
# What runs beforehand, with room; and what meets a full disk.
COMMANDS = {
    "analyze": ("", "analyze memes/en-001.png -m fake/builder --calls calls --out a.html"),
    "annotate backup": (DATABASE, "annotate backup b.zip --db a.db"),
    "annotate errors": (
        "run mquest -m baseline/random --data starter --out runs",
        "annotate errors runs/* --out errors",
    ),
    "annotate export": (DATABASE, "annotate export 1 --db a.db --out v.jsonl"),
    "annotate import": (QUEUE, "annotate import screened/review --db a.db"),
    "annotate restore": (
        f"{DATABASE}; annotate backup b.zip --db a.db",
        "annotate restore b.zip --db copy/a.db",
    ),
    "annotate texts": ("collect memes", "annotate texts memes"),
    "audit": ("", "audit mquest --data starter --out audit.html"),
    "build captions": ("", "build captions starter -m fake/drafter --out built --limit 2"),
    "build chats": ("", CHATS),
    "build chat-quality": (CHATS, "build chat-quality built/chats.jsonl --out q.json"),
    "build draw": (ASKED, "build draw built --first Toxicity"),
    "build intents": ("", DRAFTED),
    "build knowledge": ("", KNOWN),
    "build questions": (KNOWN, "build questions built -m fake/builder"),
    "build reappraisal": ("", "build reappraisal memes --editor none --limit 1 --out built"),
    "build shards": (
        "",
        "build shards memes/en-001.png --what captions -m fake/drafter --out shards",
    ),
    "collect": ("", "collect memes --out collected"),
    "collect in place": ("", "collect memes"),
    "demo": ("", "demo --out demo"),
    "detector eval": (DETECTOR, "detector eval d.zip --data starter --page e.html"),
    "detector explain": (DETECTOR, "detector explain d.zip sunshine --page e.html"),
    "detector export": (DETECTOR, "detector export d.zip --out other.zip"),
    "detector forget": (
        f"{DETECTOR}; detector teach d.zip sunshine --label harmful",
        "detector forget d.zip p" + sha256(b":sunshine").hexdigest()[:12],
    ),
    "detector predict": (DETECTOR, "detector predict d.zip --data starter --out v.jsonl"),
    "detector precedents": (
        f"{DETECTOR}; detector teach d.zip sunshine --label harmful",
        "detector precedents d.zip --export p.csv",
    ),
    "detector set": (DETECTOR, "detector set d.zip --threshold 0.4"),
    "detector teach": (DETECTOR, "detector teach d.zip sunshine --label harmful"),
    "detector train": ("", DETECTOR),
    "detector use": (DETECTOR, "detector use d.zip"),
    "drift": (QUEUE, "drift screened --against screened --out d.html"),
    "edit": (PUBLISHED, "edit kinder --editor embedded --mode masked --out edited --limit 1"),
    "expert train": ("", EXPERT),
    "expert use": (EXPERT, "expert use e.zip"),
    "export-inspect": (RUN, "export-inspect runs/* --out logs"),
    "export-task": (
        "",
        "export-task mquest/qa --data starter --format openai-batch -m x --out task",
    ),
    "gallery": (
        f"{PUBLISHED}; run kinder -m baseline/random --out runs",
        "gallery runs/* --out g.html",
    ),
    "humans export": (INTENTS, "humans export runs/* --out humans"),
    "import-answers": (
        "",
        "import-answers answers.csv --task mquest/qa --model x --limit 8 --out runs",
    ),
    "judge": (INTENTS, "judge runs/* -m baseline/random"),
    "kb export": ("kb import starter --store kb", "kb export --store kb --out all.nq"),
    "kb import": ("", "kb import starter --store kb"),
    "kb show": ("kb import starter --store kb", "kb show en-012 --store kb --out m.html"),
    "paper": (RUN, "paper mquest runs/* --data starter --out p.html"),
    "probe": (
        "",
        "probe toxicn_mm/detection -m baseline/majority --probe picture=blank --limit 4 --out runs",
    ),
    "publish": (DRAFTED, "publish built --name mine --licence CC0-1.0 --unreviewed"),
    "reappraise": ("", "reappraise memes/en-012.png --editor none --out new"),
    "report": (RUN, "report runs/* --out r.html"),
    "run": ("", RUN),
    "score": (RUN, "score runs/*"),
    "screen": ("", "screen texts.jsonl --out screened --csv --review 0.1..0.9"),
    "serve-token": ("", "serve-token me --tokens tokens"),
    "starter copy": ("", "starter copy copied"),
}


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "disk"
    place.mkdir()
    made = ["mount", "-t", "tmpfs", "-o", "size=20m", "tmpfs", str(place)]
    if os.getuid() or subprocess.run(made, capture_output=True, check=False).returncode:
        pytest.skip("a file system of 20 MB can only be mounted by root")
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def fill(place: Path, left: int) -> None:
    """Take all room but so many KB."""
    free = shutil.disk_usage(place).free
    (place / "ballast").write_bytes(bytes(max(0, free - left * 1024)))


def list_scrap(place: Path) -> list[str]:
    files = (path for path in place.rglob("*") if path.is_file())
    return sorted(str(path.relative_to(place)) for path in files if SCRAP.match(path.name))


def prepare(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    for module in (screen, build_shards):
        monkeypatch.setattr(module, "PoolEngine", lambda *_: InlineEngine())
    rows = (f'{{"id":"{n}","text":"{n} good mornings to you all"}}\n' for n in range(300))
    (disk / "texts.jsonl").write_text("".join(rows))
    labels = (
        f"{n},{('joy', 'fear')[n % 2]},{('sun is up', 'dark night')[n % 2]} {n}\n"
        for n in range(40)
    )
    (disk / "labels.csv").write_text("id,label,text\n" + "".join(labels))
    (disk / "memes").mkdir()
    for name in ("en-001.png", "en-009.png", "en-012.png"):
        shutil.copy(IMAGES / name, disk / "memes")
    shutil.copy(ROOT / "examples" / "answers" / "full_results.csv", disk / "answers.csv")
    shell = Shell(disk)
    for before in filter(None, COMMANDS[command][0].split("; ")):
        shell.done(*expand(disk, before))
    return shell


def expand(disk: Path, command: str) -> list[str]:
    """The words of a command; a star stands for the one folder there is."""
    return [
        str(next(disk.glob(word)).relative_to(disk)) if "*" in word else word
        for word in command.split()
    ]


def check(ran: Ran) -> None:
    said = [line for line in ran.err.splitlines() if line.startswith("error: ")]
    assert "Traceback" not in ran.err, ran.err
    assert len(said) == 1, ran
    assert re.search("No space left|disk", said[0]), said


# Inspect leaves its own temporary files to the collector when the disk is full.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_a_full_disk_is_one_line(disk: Path, command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell = prepare(disk, command, monkeypatch)
    words = expand(disk, COMMANDS[command][1])
    for left in ROOM:
        fill(disk, left)
        ran = shell.run(*words)
        (disk / "ballast").unlink()
        assert not list_scrap(disk), (command, left)
        if ran.code == 0:
            return
        assert ran.code == 2, ran
        check(ran)
    shell.done(*words)
