"""``docs/how-to/add-a-benchmark.md`` shows the files of ``examples/meanings`` as they are."""

from __future__ import annotations

import re

import pytest

from tests.places import ROOT

pytestmark = pytest.mark.slow

FOLDER = ROOT / "examples" / "meanings"
PAGE = ROOT / "docs" / "how-to" / "add-a-benchmark.md"
BLOCKS = dict(
    re.findall(
        r"^\*\*`examples/meanings/([^`]+)`\*\*[^\n]*\n\n```\w*\n(.*?)```$",
        PAGE.read_text(encoding="utf-8"),
        flags=re.DOTALL | re.MULTILINE,
    )
)
FILES = sorted(
    path.relative_to(FOLDER).as_posix()
    for path in FOLDER.rglob("*")
    if path.is_file() and "__pycache__" not in path.parts
)


def test_the_page_shows_every_file() -> None:
    assert sorted(BLOCKS) == FILES


@pytest.mark.parametrize("name", FILES)
def test_the_page_shows_a_file_as_it_is(name: str) -> None:
    text = (FOLDER / name).read_text(encoding="utf-8")
    if name.startswith("sample/"):
        # Of the data only the first records are shown.
        assert BLOCKS[name].strip()
        assert text.startswith(BLOCKS[name])
    else:
        assert BLOCKS[name] == text
