"""The page of a data set: counts, duplicates, failing images and annotators, and its memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.core.seen import SeenKeys
from memantics.evaluation.data_page import profile_dataset
from memantics.evaluation.datasets import add_release
from memantics.evaluation.own_columns import LabelledColumns
from tests.commands import Shell
from tests.places import ROOT
from tests.readers import layouts as made
from tests.readers.layouts import Row, by_split, make_rows, plain


@pytest.fixture(autouse=True)
def _home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(Shell(tmp_path).home))


def write_set(folder: Path) -> None:
    """Twelve memes: a text and an image repeated, one across splits, and one broken image."""
    rows = make_rows()
    first, second, *rest = rows
    rest[0] = Row(rest[0].id, "train", first.text.upper(), "fine", first.image)
    rest[-1] = Row(rest[-1].id, "test", second.text, "fine", second.image)
    rest[-2] = Row(rest[-2].id, "test", rest[-2].text, "fine", b"no image")
    rows = [first, second, *rest]
    for split, some in by_split(rows, plain).items():
        made.write_lines(folder / f"{split}.jsonl", some)
    made.write_images(folder / "images", rows)


def test_the_page_counts_duplicates_and_failing_images(tmp_path: Path) -> None:
    write_set(tmp_path / "set")
    out = Shell(tmp_path).done("data", "add", "set", "--label", "label")
    assert "repeated texts: 1 within a split, 1 across splits" in out
    assert "repeated images: 1 within a split, 1 across splits" in out
    assert "images that cannot be read: 1" in out
    assert "page: " in out
    found = profile_dataset("set")
    assert found.splits == {"train": 6, "validation": 2, "test": 4}
    assert found.texts.within == {"train": 1}
    assert found.texts.across == {"train and test": 1}
    assert found.images.examples == (("m2", "train", "train"), ("m11", "test", "train"))
    assert [name for name, _ in found.failures] == ["m10"]
    assert found.labels[0].splits["validation"] == {"hateful": 1, "fine": 1}
    page = (Shell(tmp_path).home / "datasets/set.html").read_text(encoding="utf-8")
    for said in ("12 memes", "across <bdi>train and test</bdi>", "12 of 12 images", "m10"):
        assert said in page, said


def test_the_page_lists_annotators_and_their_groups(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    shell.done("data", "add", ROOT / "examples/disagreement", "--votes", "tone")
    out = shell.done("data", "page", "disagreement", "--out", tmp_path / "page.html")
    assert "annotators: 6" in out
    found = profile_dataset("disagreement")
    assert found.votes["tone"][:2] == (648, 6.0)
    assert found.attributes == {
        "gender": {"F": 324, "M": 324},
        "age": {"18-22": 216, "23-45": 216, "46+": 216},
    }
    assert "unanimous memes" in (tmp_path / "page.html").read_text(encoding="utf-8")
    with pytest.raises(InputError, match="has no dataset config"):
        profile_dataset("mquest")


def test_keys_seen_before_keep_their_first_label() -> None:
    with SeenKeys() as seen:
        assert [seen.add(key, label) for key, label in (("a", "1"), ("b", "2"), ("a", "3"))] == [
            None,
            None,
            "1",
        ]
        assert seen.add(b"a") == "1"


def test_a_copy_is_read_again_for_every_use_and_not_held(tmp_path: Path) -> None:
    """Memes come from the files each time: the list of a set is never built."""
    write_set(tmp_path / "set")
    add_release(str(tmp_path / "set"), columns=LabelledColumns(["label"]))
    from memantics.benchmarks.registry import find_benchmark
    from memantics.core.registry import find_registered

    release = find_benchmark("set").open(find_registered("set").source)
    memes = release.memes  # type: ignore[attr-defined]
    assert not isinstance(memes, list | tuple)
    assert next(memes).id == "m0"
    assert len(list(memes)) == 11
    (tmp_path / "set/train.jsonl").write_text("")
    with pytest.raises(InputError, match="was changed while in use"):
        list(release.memes)  # type: ignore[attr-defined]
