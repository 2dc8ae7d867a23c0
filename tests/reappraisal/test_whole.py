"""Editors over an index, end to end and masked; the judge takes what they write."""

from __future__ import annotations

import asyncio
import base64
import importlib
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from memantics.benchmarks.mer_bench.load import open_release
from memantics.core.data import Source
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.evaluation.datasets import add_release
from memantics.understanding.edit import Edited, edit, edit_async
from memantics.understanding.editing import EditorSettings
from memantics.understanding.reappraisal.whole import EditWish, write_instruction
from tests.mer_bench.samples import opened, write_release
from tests.mer_bench.test_judge import task_on
from tests.reappraisal.test_openai_images import png, serving


async def edit_all(root: Path, got: list[dict[str, Any]], broken: str = "", **more: Any) -> Edited:
    async def handle(request: web.Request) -> web.Response:
        form = await request.post()
        got.append(dict(form))
        if broken and broken in str(form["prompt"]):
            return web.json_response({"error": {"message": "no"}}, status=400)
        data = base64.b64encode(png("gold", (64, 48))).decode()
        return web.json_response({"data": [{"b64_json": data}]})

    async with serving(handle) as url:
        return await edit_async(
            "mer_bench",
            editor="openai-images/painter",
            data="release",
            settings=EditorSettings(editor_url=url),
            **more,
        )


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Source:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    made = write_release(tmp_path / "release", 4, ())
    add_release("mer_bench", made.root)
    return made


def test_the_whole_picture_goes_out_with_the_exact_caption_and_no_mask(source: Source) -> None:
    got: list[dict[str, Any]] = []
    done = asyncio.run(edit_all(source.root, got))
    assert (done.made, done.kept, done.failed) == (4, 0, {})
    assert done.folder == source.root / "data" / "EditedResults" / "painter"
    assert all("mask" not in form for form in got)
    texts = {str(form["prompt"]) for form in got}
    for row in open_release(source).rows:
        (text,) = [own for own in texts if row.rewritten in own]
        assert row.plan in text
        assert row.target_emotion in text
        assert load(done.folder / row.id).size == (24, 24)
    judged = {item.id for item in task_on(source).items()}
    assert judged == {f"painter/{n}.png" for n in range(4)}


def test_what_is_there_is_kept_and_what_fails_is_named(source: Source) -> None:
    got: list[dict[str, Any]] = []
    first = asyncio.run(edit_all(source.root, got, broken="ducks love day 2"))
    assert first.made == 3
    assert list(first.failed) == ["2.png"]
    (first.folder / "1.png").write_bytes(b"cut off")
    got.clear()
    again = asyncio.run(edit_all(source.root, got))
    assert (again.made, again.kept, again.failed) == (2, 2, {})
    assert len(got) == 2


def test_a_copy_elsewhere_is_a_release_of_its_own(source: Source, tmp_path: Path) -> None:
    out = tmp_path / "copy"
    done = asyncio.run(edit_all(source.root, [], out=out, called="mine", limit=2))
    assert done.folder == out / "EditedResults" / "mine"
    release = opened(Source("release", out))
    assert release.editors() == ("mine",)
    assert sum(release.find_edited("mine", row) is not None for row in release.rows) == 2
    assert not (source.root / "data" / "EditedResults").exists()


def test_editors_that_cannot_write_are_refused(source: Source) -> None:
    with pytest.raises(InputError, match="cannot write captions"):
        asyncio.run(edit_async("mer_bench", editor="embedded", data="release"))
    with pytest.raises(InputError, match="sample data cannot be overwritten"):
        asyncio.run(edit_async("mer_bench", editor="none", mode="masked", data="sample"))


def test_masked_edits_read_the_text_that_settings_name(
    source: Source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []

    def refuse(*, text: str) -> None:
        seen.append(text)
        raise InputError("read", hint="no further")

    module = importlib.import_module("memantics.understanding.edit")
    monkeypatch.setattr(module, "open_reader", refuse)
    for settings in (None, EditorSettings(text="all")):
        with pytest.raises(InputError, match="no further"):
            edit(editor="none", mode="masked", limit=1, out=tmp_path, settings=settings)
    assert seen == ["caption", "all"]


@pytest.mark.parametrize("name", ["../mine", "a/b", "..", ".stages", "/tmp"])
def test_an_editors_folder_lies_among_the_others(source: Source, name: str, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a valid folder name"):
        asyncio.run(
            edit_async(
                "mer_bench", editor="none", mode="masked", data="release", out=tmp_path, called=name
            )
        )
    assert not (tmp_path / "Original").exists()


@pytest.mark.slow
def test_masked_edits_of_the_sample(tmp_path: Path) -> None:
    """Captions are set by us where the index says what each of them becomes."""
    done = asyncio.run(
        edit_async(
            "mer_bench", editor="embedded", mode="masked", data="sample", out=tmp_path, limit=3
        )
    )
    assert done.made + len(done.failed) == 3
    assert done.made >= 1
    assert all(reason for reason in done.failed.values())
    release = opened(Source("release", tmp_path))
    assert release.editors() == ("embedded",)


def test_the_instruction_says_it_all() -> None:
    wish = EditWish(
        *("1.png", "sad", "happy", "a wet cat", "ducks love it", "an umbrella"),
        *("Cartoon_Anime", "Negative"),
    )
    text = write_instruction(wish)
    assert all(words in text for words in ("ducks love it", "an umbrella", "sad", "happy"))
