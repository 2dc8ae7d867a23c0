"""``memantics reappraise`` as a user runs it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from memantics.cli.understanding import review_in_terminal
from memantics.core.errors import ImageError
from memantics.core.samples import IMAGES
from memantics.understanding.reappraisal.records import ReappraisalPlan
from memantics.understanding.reappraise import find_memes
from tests.commands import Shell
from tests.kinder import PLANNER
from tests.reappraisal.benches import PLAN


@pytest.mark.slow
def test_a_meme_is_turned_around_and_a_second_run_does_nothing(shell: Shell) -> None:
    meme = shell.folder / "my meme!.png"
    shutil.copy(IMAGES / "en-012.png", meme)
    before = meme.read_bytes()
    ran = shell.run("reappraise", meme, *PLANNER, "--target", "calm")
    assert ran.code == 0, ran
    assert "angry -> calm" in ran.out
    assert "1 of 1 done" in ran.out
    folder = shell.folder / "reappraised" / "my_meme"
    assert {path.name for path in folder.iterdir()} == {
        "before-after.png",
        "checks.json",
        "feeling.json",
        "meme.png",
        "plan.json",
    }
    assert meme.read_bytes() == before
    written = (folder / "meme.png").stat().st_mtime_ns
    again = shell.run("reappraise", meme, *PLANNER, "--target", "calm", "--json")
    (result,) = json.loads(again.out)
    assert (result["status"], result["plan"]["target"]) == ("done", "calm")
    assert result["checks"]["panels_after"] == 1
    assert (folder / "meme.png").stat().st_mtime_ns == written


@pytest.mark.slow
def test_without_a_model_one_line_says_so(shell: Shell) -> None:
    shutil.copy(IMAGES / "en-012.png", shell.folder / "meme.png")
    ran = shell.run("reappraise", "meme.png")
    assert ran.code == 0, ran
    assert "captions need a model: name one (--model KIND/NAME" in " ".join(ran.out.split())
    assert not (shell.folder / "reappraised" / "meme" / "meme.png").exists()


@pytest.mark.slow
def test_the_word_lists_no_longer_plan(shell: Shell) -> None:
    shutil.copy(IMAGES / "en-012.png", shell.folder / "meme.png")
    assert "embedded/planner" in shell.refused("reappraise", "meme.png", "-m", "embedded/planner")


@pytest.mark.slow
def test_drafts_without_a_model_are_declined_with_the_reason(shell: Shell) -> None:
    (shell.folder / "memes").mkdir()
    shutil.copy(IMAGES / "en-012.png", shell.folder / "memes")
    said = shell.done("build", "reappraisal", "memes", "--out", "built")
    assert "en-012: declined: captions need a model" in " ".join(said.split())
    assert "0 drafts" in said
    assert not [*(shell.folder / "built").rglob("*.png")]


def test_hostile_images_are_refused(shell: Shell) -> None:
    bomb = shell.folder / "bomb.png"
    Image.new("1", (12_000, 12_000)).save(bomb)
    assert "too many pixels" in shell.refused("reappraise", bomb)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["gone.png"], "no such file"),
        (["x.png", "--editor", "photoshop"], "unknown editor 'photoshop'"),
        (
            ["x.png", "--editor", "none", "--sticker"],
            "--sticker works only with the embedded editor",
        ),
        (["x.png", "--editor", "diffusers/nowhere"], "model_index.json is missing"),
        (["x.png", "--model", "oracle/delphi"], "unknown model kind 'oracle'"),
    ],
)
def test_what_a_user_can_fix_is_one_line(shell: Shell, arguments: list[str], said: str) -> None:
    Image.new("RGB", (40, 40)).save(shell.folder / "x.png")
    assert said in shell.refused("reappraise", *arguments)


def test_names_become_safe_folders(tmp_path: Path) -> None:
    for name in ("...png", "a b.png", "a_b.png", "é.png"):
        Image.new("RGB", (8, 8)).save(tmp_path / name, "PNG")
    paths = [tmp_path / name for name in ("...png", "a b.png", "a_b.png", "é.png")]
    names = [meme.id for meme in find_memes(paths)]
    assert names == ["meme", "a_b", "a_b-2", "é"]
    assert len(find_memes([tmp_path])) == 4
    with pytest.raises(ImageError):
        find_memes([tmp_path / "gone.png"])


@pytest.fixture
def plan() -> ReappraisalPlan:
    return ReappraisalPlan.model_validate(PLAN)


def play(monkeypatch: pytest.MonkeyPatch, answers: list[str], edits: list[str]) -> None:
    said: Iterator[str] = iter(answers)
    typed: Iterator[str] = iter(edits)
    monkeypatch.setattr("memantics.cli.understanding.typer.prompt", lambda *_, **__: next(said))
    opened = "memantics.cli.understanding._open_editor"
    monkeypatch.setattr(opened, lambda _: next(typed).encode())


def test_a_person_accepts_skips_and_edits(
    plan: ReappraisalPlan, monkeypatch: pytest.MonkeyPatch
) -> None:
    play(monkeypatch, ["a"], [])
    assert review_in_terminal("plan", "m", plan, lambda _: []) == plan
    play(monkeypatch, ["s"], [])
    assert review_in_terminal("plan", "m", plan, lambda _: []) is None
    better = json.dumps(PLAN | {"visual": "All smile."})
    play(monkeypatch, ["e", "a"], [better])
    edited = review_in_terminal("plan", "m", plan, lambda _: [])
    assert edited is not None
    assert edited.visual == "All smile."


def test_a_bad_edit_is_dropped_and_a_fault_cannot_be_accepted(
    plan: ReappraisalPlan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    play(monkeypatch, ["e", "e", "a"], ["{oops", '{"target": "sad"}'])
    assert review_in_terminal("plan", "m", plan, lambda _: []) == plan
    shown = capsys.readouterr().out
    assert "not valid JSON" in shown
    assert "the edit is dropped" in shown
    play(monkeypatch, ["a", "s"], [])
    assert review_in_terminal("plan", "m", plan, lambda _: ["too long"]) is None
    assert "not allowed: too long" in capsys.readouterr().out


def test_the_editor_is_the_users_own(
    plan: ReappraisalPlan, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = iter(["e", "e", "a"])
    monkeypatch.setattr("memantics.cli.understanding.typer.prompt", lambda *_, **__: next(said))
    # The first edit works; for the second the editor is gone, and nothing is lost.
    editors = iter([f"sed -i 's/{PLAN['keep']}/All of it./'", "no-such-editor"])
    monkeypatch.delenv("VISUAL", raising=False)

    def check(_: ReappraisalPlan) -> list[str]:
        monkeypatch.setenv("EDITOR", next(editors, ""))
        return []

    kept = review_in_terminal("plan", "m", plan, check)
    assert kept is not None
    assert kept.keep == "All of it."
    assert "set EDITOR" in " ".join(capsys.readouterr().out.split())


def test_a_folder_cannot_be_left_by_a_files_name(shell: Shell) -> None:
    """An image called "...png" is the meme "..": its files stay below the editor's folder."""
    (shell.folder / "memes").mkdir()
    Image.new("RGB", (40, 40)).save(shell.folder / "memes" / "...png", "PNG")
    shell.done("build", "reappraisal", "memes", "--editor", "none", "--out", "made")
    made = shell.folder / "made" / "reappraised" / "captions-only"
    assert [path.name for path in made.iterdir()] == ["meme"]
    assert [path.name for path in made.parent.iterdir()] == ["captions-only"]


def test_images_that_nobody_can_read_are_errors(shell: Shell) -> None:
    (shell.folder / "x.png").write_bytes(b"<svg/>")
    assert "not one of PNG" in shell.refused("reappraise", "x.png")
    assert "needs a terminal" in shell.refused("reappraise", "x.png", "--interactive")
