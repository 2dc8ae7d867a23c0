"""The failure filter decodes; a file that merely exists is not enough."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from memantics.benchmarks.mer_bench.views import choose_editors, keep_judgeable
from memantics.core.errors import DataError, UnknownName
from tests.mer_bench.samples import draw, opened, write_release


def test_only_memes_whose_images_all_decode_are_kept(tmp_path: Path) -> None:
    source = write_release(tmp_path, 8)
    original, edited = tmp_path / "data" / "Original", tmp_path / "data" / "EditedResults"
    (original / "0.png").unlink()
    (edited / "one" / "1.png").unlink()
    whole = (edited / "one" / "2.png").read_bytes()
    (edited / "one" / "2.png").write_bytes(whole[: len(whole) // 2])
    (edited / "two" / "2.png").write_bytes(b"")
    (original / "3.png").write_text("<html>rate limited</html>")
    (edited / "two" / "4.png").write_bytes(b"GIF89a but no more")
    release = opened(source)
    kept = keep_judgeable(release, ("one", "two"))
    assert [row.id for row in kept.rows] == ["5.png", "6.png", "7.png"]
    assert kept.total == 8
    assert kept.skipped["source missing"] == 1
    assert kept.skipped["one missing"] == 1
    assert kept.skipped["one truncated"] == 1
    assert kept.skipped["source format"] == 1
    assert sum(count for reason, count in kept.skipped.items() if reason.startswith("two")) == 2
    # With one editor fewer, its failures no longer matter.
    assert len(keep_judgeable(release, ("two",)).rows) == 4


def test_the_editors_a_user_names(tmp_path: Path) -> None:
    release = opened(write_release(tmp_path, 1, ("b", "a", "c")))
    assert choose_editors(release, "all") == ("a", "b", "c")
    assert choose_editors(release, "c+a") == ("a", "c")
    assert choose_editors(release, "c, a") == ("a", "c")
    with pytest.raises(UnknownName, match=r"unknown editor 'd'.*known: a, all, b, c"):
        choose_editors(release, "a+d")


def test_no_edits_at_all(tmp_path: Path) -> None:
    release = opened(write_release(tmp_path, 1, ()))
    with pytest.raises(DataError, match=r"no edited images found.*EditedResults/EDITOR"):
        choose_editors(release, "all")


def test_nothing_left_says_why(tmp_path: Path) -> None:
    source = write_release(tmp_path, 2)
    for path in (tmp_path / "data" / "EditedResults" / "one").iterdir():
        path.write_bytes(b"")
    with pytest.raises(DataError, match=r"no meme has a readable source.*one format \(2\)"):
        keep_judgeable(opened(source), ("one", "two"))


def test_names_that_lead_outside_never_reach_the_filter(tmp_path: Path) -> None:
    source = write_release(tmp_path, 1)
    index = tmp_path / "data" / "index_final.json"
    row = json.loads(index.read_text())[0]
    draw(tmp_path / "secret.png")
    index.write_text(json.dumps([row | {"id": "../../secret.png", "gen_id": "../../secret.png"}]))
    with pytest.raises(DataError, match=r"is not a plain file name that ends in \.png"):
        opened(source)
