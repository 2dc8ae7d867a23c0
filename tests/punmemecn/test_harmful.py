"""The memes of the stress test: folders of the user's, labels in their stead, our sample."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

import pytest

from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.records import Outcome
from tests.punmemecn.release import SAMPLE, make_task, write_release


def fill(root: Path, folder: str, *names: str) -> None:
    (root / folder).mkdir(exist_ok=True)
    for name in names:
        shutil.copy(root / "CN00001.png", root / folder / name)


@pytest.fixture
def source(tmp_path: Path) -> Source:
    return write_release(tmp_path, (1, 2, 3, 4), ("other-negative", "self-neutral"))


def test_without_folders_the_task_says_what_is_missing(source: Source) -> None:
    with pytest.raises(DataError) as caught:
        list(make_task("harmful", source).items())
    text = str(caught.value)
    assert text.startswith("harmful_pun and harmful_nonpun: no harmful memes found")
    assert "memes=negative" in text
    fill(source.root, "harmful_pun", "a.png")
    with pytest.raises(DataError, match=r"^harmful_nonpun: no harmful"):
        list(make_task("harmful", source).items())


def test_folders_are_read_and_official_names_bring_their_captions(source: Source) -> None:
    fill(source.root, "harmful_pun", "CN00002.png", "b.jpg")
    fill(source.root, "harmful_nonpun", "CN00002.png", "c.PNG")
    (source.root / "harmful_nonpun" / ".keep").touch()
    items = {item.id: item for item in make_task("harmful", source).items()}
    assert Counter(i.tags["kind"] for i in items.values()) == {"pun": 2, "nonpun": 2}
    told = items["pun/CN00002.png"]
    assert told.form.context == {"caption": "有茶就型2"}
    assert told.group == "CN00002"
    assert items["pun/b.jpg"].form.context == {}
    assert items["pun/b.jpg"].group == "b"
    silent = make_task("harmful", source, caption="none")
    assert all(item.form.context == {} for item in silent.items())
    made = make_task("harmful", source)
    texts = [made.ask(item, None).messages[0].parts[-1] for item in made.items()]
    assert ["有茶就型2" in str(text) for text in texts] == [True, False, True, False]


def test_what_is_in_the_folders_enters_what_a_run_remembers(source: Source) -> None:
    fill(source.root, "harmful_pun", "a.png")
    fill(source.root, "harmful_nonpun", "b.png")
    before = make_task("harmful", source).prompts
    fill(source.root, "harmful_nonpun", "c.png")
    after = make_task("harmful", source).prompts
    assert [name for name in before if before[name] != after[name]] == ["harmful memes"]


def test_anything_else_in_a_folder_is_named(source: Source) -> None:
    fill(source.root, "harmful_pun", "a.png", "notes.txt")
    with pytest.raises(DataError, match=r"harmful_pun/notes.txt: is not an image"):
        list(make_task("harmful", source, memes="folders").items())


def test_labels_may_stand_in(source: Source) -> None:
    items = list(make_task("harmful", source, memes="negative").items())
    assert Counter(i.tags["kind"] for i in items) == {"pun": 2, "nonpun": 4}
    assert {i.group for i in items} == {"CN00001", "CN00003"}


def test_the_sample_has_mildly_rude_ones_of_both_kinds() -> None:
    items = list(make_task("harmful", SAMPLE).items())
    assert {i.tags["kind"] for i in items} == {"pun", "nonpun"}
    assert all(i.form.context["caption"] for i in items)


def test_a_third_folder_is_the_first_column_of_table_5(source: Source) -> None:
    fill(source.root, "harmful_pun", "a.png", "b.png")
    fill(source.root, "harmful_nonpun", "c.png")
    plain = make_task("harmful", source)
    keys = {s.key for s in plain.score([Outcome(i, "answered", "harmful") for i in plain.items()])}
    assert not keys & {"recall_toxicn", "drop_pun", "drop_nonpun"}
    fill(source.root, "harmful_toxicn", "d.png", "e.png")
    task = make_task("harmful", source)
    said = {"pun/a.png": "harmless", "toxicn/e.png": "harmless"}
    outcomes = [Outcome(i, "answered", said.get(i.id, "harmful")) for i in task.items()]
    found = {s.key: s.value for s in task.score(outcomes)}
    assert found == {
        "recall_pun": 0.5,
        "recall_nonpun": 1.0,
        "recall_toxicn": 0.5,
        "drop": 0.5,
        "drop_nonpun": -0.5,
        "drop_pun": 0.0,
        "refusals": 0.0,
    }
