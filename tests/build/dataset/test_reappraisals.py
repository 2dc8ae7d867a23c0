"""Memes turned around become drafts, a review, a benchmark and a gallery."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memantics.core.queue import Verdict, read_queue, write_verdicts
from memantics.starter import image_path
from tests.browser import launch, watch
from tests.commands import Shell

EDITORS = ("--editor", "embedded", "--editor", "none")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Two memes, two editors, built once for all tests here."""
    shell = Shell(tmp_path_factory.mktemp("reappraisals")).apart
    (shell.folder / "memes").mkdir()
    for name in ("en-001", "en-020"):
        shutil.copy(image_path(name), shell.folder / "memes")
    shell.done("build", "reappraisal", "memes", *EDITORS)
    return shell


def build_of(shell: Shell) -> Path:
    return shell.folder / "builds" / "memes-reappraisal"


def test_drafts_are_in_the_benchmarks_terms(built: Shell) -> None:
    lines = (build_of(built) / "reappraisal.jsonl").read_text().splitlines()
    drafts = [json.loads(line) for line in lines]
    assert [draft["meme"] for draft in drafts] == ["en-001", "en-020"]
    pairs = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}
    for draft in drafts:
        assert pairs[draft["source_emotion"]] == draft["target_emotion"]
        assert draft["rewritten"]
        assert draft["text"]
        assert draft["editors"] == ["captions-only", "embedded"]


def test_the_queue_shows_source_and_edits(built: Shell) -> None:
    card, items = read_queue(build_of(built) / "queue")
    assert card.workflow == "verify-stages"
    assert [len(item.images) for item in items] == [3, 3]
    for item in items:
        assert all((build_of(built) / "queue" / image).is_file() for image in item.images)


def test_building_again_changes_nothing(built: Shell) -> None:
    before = {
        path: path.stat().st_mtime_ns for path in (build_of(built) / "reappraised").rglob("*.png")
    }
    built.done("build", "reappraisal", "memes", *EDITORS)
    after = {
        path: path.stat().st_mtime_ns for path in (build_of(built) / "reappraised").rglob("*.png")
    }
    assert before == after


def test_a_correction_in_the_review_is_what_is_published(built: Shell) -> None:
    queue = build_of(built) / "queue"
    _, items = read_queue(queue)
    verdicts = [
        Verdict(
            item=items[0].id,
            group=items[0].group,
            workflow="verify-stages",
            kept=True,
            values={"rewritten": "Corrected by a person"},
        ),
        Verdict(
            item=items[1].id,
            group=items[1].group,
            workflow="verify-stages",
            kept=False,
            values={},
            reason="removed at plan",
        ),
    ]
    write_verdicts(built.folder / "verdicts.jsonl", verdicts)
    built.done(
        *("publish", build_of(built), "--name", "checked", "--licence", "CC0-1.0"),
        *("--verdicts", "verdicts.jsonl"),
    )
    index = built.folder / "published" / "checked" / "data" / "index_final.json"
    (row,) = json.loads(index.read_text())
    assert row["pos_txt"] == "Corrected by a person"


def test_several_editors_are_judged_and_shown(built: Shell) -> None:
    built.done(
        "publish", build_of(built), "--name", "kinder", "--licence", "CC0-1.0", "--unreviewed"
    )
    built.done("run", "kinder", "-m", "fake/keys")
    (run,) = (built.folder / "runs").glob("kinder-judge-*")
    assert len((run / "items.jsonl").read_text().splitlines()) == 4
    built.done("gallery", run, "--out", "gallery.html")
    with launch() as browser, watch(browser) as seen:
        page = seen.page
        page.goto((built.folder / "gallery.html").as_uri())
        assert page.locator("#editors ~ * tbody tr").count() == 2
        assert page.locator(".exhibit").count() == 2
        assert page.locator(".exhibit figure").count() == 6
        page.locator("#veil").click()
        assert "veiled" not in (page.locator("body").get_attribute("class") or "")
        page.locator("#state").select_option("failed")
        assert page.locator(".exhibit:visible").count() == 0
        page.set_viewport_size({"width": 390, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        seen.assert_quiet()


def test_a_run_of_another_kind_has_no_gallery(built: Shell) -> None:
    built.done("run", "mquest", "-m", "fake/keys", "--limit", "2")
    (run,) = (built.folder / "runs").glob("mquest-*")
    assert "judges no edited memes" in built.refused("gallery", run)


def test_a_pair_that_is_none_is_refused(built: Shell) -> None:
    queue = build_of(built) / "queue"
    _, items = read_queue(queue)
    wrong = Verdict(
        item=items[0].id,
        group=items[0].group,
        workflow="verify-stages",
        kept=True,
        values={"source_emotion": "sad", "target_emotion": "calm"},
    )
    write_verdicts(built.folder / "wrong.jsonl", [wrong])
    line = built.refused(
        *("publish", build_of(built), "--name", "bad_pairs", "--licence", "CC0-1.0"),
        *("--verdicts", "wrong.jsonl"),
    )
    assert "sad to calm is no pair" in line
