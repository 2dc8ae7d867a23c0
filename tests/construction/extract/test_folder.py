"""The folder of a build: what goes in comes out again."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.memes import Meme, MemeLine, read_memes
from memantics.core.samples import image_path
from memantics.understanding.extraction.report import adopt_memes, safe_id


@pytest.mark.parametrize(
    "name", ["line\n", "a" * 201, "", "..", "my meme (2)", "喵-1", "a/b", "\0"]
)
def test_every_id_that_is_given_is_read_again(name: str) -> None:
    assert MemeLine(id=safe_id(name), image="x").id


def test_memes_keep_all_that_is_known_about_them(tmp_path: Path) -> None:
    notes = {"meaning": "a greeting"}
    memes = [
        Meme("en-001", image_path("en-001"), "hello\nthere", "en", notes, "greetings"),
        Meme("two words", image_path("en-002")),
    ]
    adopted = adopt_memes(memes, tmp_path).memes
    assert read_memes(tmp_path) == adopted
    first, second = adopted
    assert (first.text, first.notes, first.template_cluster) == ("hello\nthere", notes, "greetings")
    assert (second.text, second.language, second.template_cluster) == ("", "", "")
    assert first.image.read_bytes() == image_path("en-001").read_bytes()
