"""``kill -9`` series on retrain, screen and publish: the same command again ends unhurt."""

from __future__ import annotations

import hashlib
import json
import signal
from pathlib import Path

import pytest

from memantics.core.errors import MemanticsError
from memantics.core.queue import write_annotations
from memantics.moderation.detect import Detector
from memantics.moderation.screening import read_rows
from tests.commands import Shell
from tests.construction.publish.test_publish import vote
from tests.kills import choose_points, run_counted
from tests.moderation.samples import make_examples
from tests.moderation.test_retrain import make_verdict

pytestmark = pytest.mark.slow
_ALL = 1 << 30


def _sum(folder: Path) -> dict[str, str]:
    """Checksums of all files of a folder, by name."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def _list_leftovers(folder: Path) -> list[str]:
    return [path.name for path in folder.rglob("*") if path.suffix in (".part", ".partial")]


def _count(shell: Shell, command: list[str], tmp_path: Path, codes: tuple[int, ...] = (0,)) -> int:
    done = run_counted(shell, command, _ALL, tmp_path / "count")
    assert done.code in codes, done.err
    return int((tmp_path / "count").read_text())


def test_publish(tmp_path: Path) -> None:
    whole = Shell(tmp_path / "whole")
    hurt = Shell(tmp_path / "hurt")
    for shell in (whole, hurt):
        shell.folder.mkdir()
        vote(shell.folder, 4)
    command = ["publish", "queue", "--name", "office_harm", "--licence", "CC0-1.0"]
    total = _count(whole, command, tmp_path)
    expected = _sum(whole.folder / "published" / "office_harm")
    assert total > 10
    assert len(expected) > 5
    folder = hurt.folder / "published" / "office_harm"
    for point in choose_points(total, 10):
        done = run_counted(hurt, command, point, tmp_path / "unused")
        assert done.code == -signal.SIGKILL, (point, done)
        # What is there under its final name is complete.
        assert not folder.exists() or _sum(folder) == expected, point
    assert run_counted(hurt, command, _ALL, tmp_path / "unused").code == 0
    assert _sum(folder) == expected
    assert [path.name for path in (hurt.folder / "published").iterdir()] == ["office_harm"]
    assert hurt.run("run", "office_harm/detection", "-m", "fake/keys").code == 0


def test_screen(tmp_path: Path) -> None:
    shells = Shell(tmp_path / "whole"), Shell(tmp_path / "hurt")
    lines = [f'{{"id": "m{n}", "text": "text number {n}"}}\n' for n in range(24)]
    for shell in shells:
        shell.folder.mkdir()
        (shell.folder / "memes.jsonl").write_text("".join(lines))
    whole, hurt = shells
    command = ["screen", "memes.jsonl", "--workers", "1", "--shard-size", "6", "--out", "out"]
    total = _count(whole, command, tmp_path)
    expected = sorted((row["id"], row["probability"]) for row in read_rows(whole.folder / "out"))
    assert len(expected) == len(lines)
    for point in choose_points(total, 8):
        done = run_counted(hurt, command, point, tmp_path / "unused")
        if done.code == 0:  # what earlier runs settled is not done again: fewer points are left
            break
        assert done.code == -signal.SIGKILL, (point, done)
    done = run_counted(hurt, command, _ALL, tmp_path / "unused")
    assert done.code == 0, done.err
    found = sorted((row["id"], row["probability"]) for row in read_rows(hurt.folder / "out"))
    assert found == expected
    assert not _list_leftovers(hurt.folder / "out")


def test_retrain(tmp_path: Path) -> None:
    shells = Shell(tmp_path / "whole"), Shell(tmp_path / "hurt")
    for shell in shells:
        shell.folder.mkdir()
        _make_detector(shell)
    whole, hurt = shells
    old = (hurt.folder / "old.zip").read_bytes()
    command = ["detector", "retrain", "old.zip", "--annotations", "right.jsonl", "--force"]
    total = _count(whole, command, tmp_path)
    assert total >= 2
    new = Detector.load(whole.folder / "old.zip")
    probability = new.predict("you are vile")[0].probability
    for point in choose_points(total, 5):
        done = run_counted(hurt, command, point, tmp_path / "unused")
        assert done.code == -signal.SIGKILL, (point, done)
        # The detector is the old one, or the new one, and can be loaded.
        try:
            found = Detector.load(hurt.folder / "old.zip")
        except MemanticsError as error:
            pytest.fail(f"point {point}: {error}")
        if (hurt.folder / "old.zip").read_bytes() != old:
            assert found.predict("you are vile")[0].probability == pytest.approx(probability)
            (hurt.folder / "old.zip").write_bytes(old)
    done = run_counted(hurt, command, _ALL, tmp_path / "unused")
    assert done.code == 0, done.err
    again = Detector.load(hurt.folder / "old.zip")
    assert again.predict("you are vile")[0].probability == pytest.approx(probability)
    # A killed process leaves its temporary file; no reader takes it for another file.
    assert all(".card." in name for name in _list_leftovers(hurt.folder))


def _make_detector(shell: Shell) -> None:
    """A detector, its data, and annotations of memes that it does not know."""
    lines = [{"id": e.id, "text": e.text, "label": e.label} for e in make_examples(60)]
    data = shell.folder / "memes.jsonl"
    data.write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    Detector.train(str(data), "ridge").save(shell.folder / "old.zip")
    annotations = [
        make_verdict(e.id, e.text, ("label", "yes" if e.label else "no"))
        for e in make_examples(20, seed=9)
    ]
    write_annotations(shell.folder / "right.jsonl", annotations)
