"""One reading of a meme is given to every step: what is printed, its language, how it sounds."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from memantics.actions import reading
from memantics.actions.build import knowledge
from memantics.actions.reading import HEARD, read_once
from memantics.build.analysis.records import Sound
from memantics.core.memes import Meme, read_memes
from memantics.starter import image_path


def read(*memes: Meme, limit: int | None = None) -> tuple[Meme, ...]:
    return asyncio.run(read_once(memes, limit))


def test_a_plain_folder_is_read_before_anything_is_asked(tmp_path: Path) -> None:
    folder = tmp_path / "memes"
    folder.mkdir()
    shutil.copy(image_path("en-001"), folder)
    (folder / "broken.png").write_bytes(b"no image")
    built = knowledge(folder, model="fake/builder", out=tmp_path / "b")
    (meme,) = read_memes(built.folder)
    assert "robot" in meme.text.casefold()
    assert meme.language == "en"
    assert [skip.row for skip in built.skips] == ["broken"]


def test_what_a_person_gave_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    heard = [Sound("鸭梨山大", "压力山大", 0.82)]
    monkeypatch.setattr(reading, "listen", lambda _text, _language: heard)
    plain = Meme("a", image_path("en-001"), "鸭梨山大", notes={"meaning": "stress"})
    (told,) = read(plain)
    assert (told.text, told.language) == ("鸭梨山大", "zh")
    assert told.notes == {"meaning": "stress", HEARD: "压力山大 (82% sure)"}
    given = Meme("a", image_path("en-001"), "鸭梨山大", "ja", {"reading": "压力"})
    assert read(given) == (given,)
    heard.clear()
    assert HEARD not in read(plain)[0].notes


def test_only_the_first_are_read_where_there_is_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "listen", lambda _text, _language: [])
    memes = [Meme(name, image_path("en-001"), "hello there") for name in "abc"]
    assert [own.language for own in read(*memes, limit=2)] == ["en", "en", ""]
    assert [own.language for own in read(*memes)] == ["en", "en", "en"]
    assert read() == ()
