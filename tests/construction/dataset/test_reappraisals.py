"""Memes turned around become drafts, a review, a benchmark and a gallery."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from memantics.core.queue import AggregatedAnnotation, read_queue, write_annotations
from memantics.core.samples import image_path
from tests.browser import launch, watch
from tests.commands import Shell
from tests.kinder import PLANNER

pytestmark = pytest.mark.slow

EDITORS = ("--editor", "embedded", "--editor", "none")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Two memes, two editors, built once for all tests here."""
    shell = Shell(tmp_path_factory.mktemp("reappraisals"))
    (shell.folder / "memes").mkdir()
    for name in ("en-012", "en-021"):
        shutil.copy(image_path(name), shell.folder / "memes")
    shell.done("build", "reappraisal", "memes", *PLANNER, *EDITORS)
    return shell


def build_of(shell: Shell) -> Path:
    return shell.folder / "builds" / "memes-reappraisal"


def test_drafts_are_in_the_benchmarks_terms(built: Shell) -> None:
    lines = (build_of(built) / "reappraisal.jsonl").read_text().splitlines()
    drafts = [json.loads(line) for line in lines]
    assert [draft["meme"] for draft in drafts] == ["en-012", "en-021"]
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
    built.done("build", "reappraisal", "memes", *PLANNER, *EDITORS)
    after = {
        path: path.stat().st_mtime_ns for path in (build_of(built) / "reappraised").rglob("*.png")
    }
    assert before == after


def judge(queue: Path, values: list[dict[str, object] | str]) -> None:
    """Annotations in the order of the queue; a text is why an item was dropped."""
    _, items = read_queue(queue)
    annotations = [
        AggregatedAnnotation(
            item=item.id,
            group=item.group,
            workflow="verify-stages",
            kept=not isinstance(own, str),
            values={} if isinstance(own, str) else own,  # type: ignore[arg-type]
            reason=own if isinstance(own, str) else "",
        )
        for item, own in zip(items, values, strict=True)
    ]
    write_annotations(queue / "annotations.jsonl", annotations)


def test_a_revised_caption_is_drawn_before_it_is_published(built: Shell, tmp_path: Path) -> None:
    """What people revise or send back is made again, judged again, and then published."""
    build = tmp_path / "build"
    shutil.copytree(build_of(built), build)
    first, second = read_queue(build / "queue")[1]
    lines = str(first.values["rewritten"]).splitlines()
    assert len(lines) == sum(1 for _ in lines)
    revised = "\n".join([f"{lines[0]} indeed", *lines[1:]])
    judge(build / "queue", [{"rewritten": revised}, "to be regenerated"])
    publish = ("publish", build, "--name", "checked", "--licence", "CC0-1.0")
    refusal = built.refused(*publish)
    assert "a person revised rewritten" in refusal
    assert "memantics build regenerate" in refusal
    before = (build / "reappraised" / "embedded" / first.id / "meme.png").read_bytes()
    built.done("build", "regenerate", build)
    _, again = read_queue(build / "queue-2")
    assert [item.id for item in again] == [first.id, second.id]
    assert again[0].values["rewritten"] == revised
    assert (build / "reappraised" / "embedded" / first.id / "meme.png").read_bytes() != before
    assert "no annotations" in built.refused(*publish)
    judge(build / "queue-2", [{}, "removed at plan"])
    built.done(*publish)
    index = built.folder / "published" / "checked" / "data" / "index_final.json"
    (row,) = json.loads(index.read_text())
    assert row["pos_txt"] == revised
    edited = index.parent / "EditedResults" / "embedded" / row["id"]
    assert edited.read_bytes() != before
    assert "no meme was sent back or revised" in built.refused("build", "regenerate", build)


def test_corrections_that_do_not_fit_are_named(built: Shell, tmp_path: Path) -> None:
    build = tmp_path / "build"
    shutil.copytree(build_of(built), build)
    _, items = read_queue(build / "queue")
    many = "\n".join(["one line too many"] * 9)
    judge(build / "queue", [{"rewritten": many}, {}])
    done = built.run("build", "regenerate", build)
    regions = len(str(items[0].values["rewritten"]).splitlines())
    if regions > 1:
        assert done.code == 1
        assert f"9 lines for {regions} captions" in done.err


def test_taxonomy_is_shown_and_a_correction_of_it_counts(built: Shell, tmp_path: Path) -> None:
    build = tmp_path / "build"
    shutil.copytree(build_of(built), build)
    _, items = read_queue(build / "queue")
    shown = {own.label: own.value for own in items[0].shown}
    assert shown["Layout"] == items[0].values["layout"]
    assert {"Visual type", "Polarity of the caption"} <= shown.keys()
    judge(build / "queue", [{"visual_type": "Cartoon_Anime", "polarity": "Positive"}, "removed"])
    built.done("publish", build, "--name", "sorted", "--licence", "CC0-1.0")
    index = built.folder / "published" / "sorted" / "data" / "index_final.json"
    (row,) = json.loads(index.read_text())
    assert (row["visual_type"], row["sentiment_polarity"]) == ("Cartoon_Anime", "Positive")


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
    assert "holds no judgements of edited memes" in built.refused("gallery", run)


def test_a_pair_that_is_none_is_refused(built: Shell) -> None:
    queue = build_of(built) / "queue"
    _, items = read_queue(queue)
    wrong = AggregatedAnnotation(
        item=items[0].id,
        group=items[0].group,
        workflow="verify-stages",
        kept=True,
        values={"source_emotion": "sad", "target_emotion": "calm"},
    )
    write_annotations(built.folder / "wrong.jsonl", [wrong])
    line = built.refused(
        *("publish", build_of(built), "--name", "bad_pairs", "--licence", "CC0-1.0"),
        *("--annotations", "wrong.jsonl"),
    )
    assert "sad to calm is not a valid pair of emotions" in line
