"""Demonstrations of the user's choosing, background that is looked up, and the headline."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from memantics.benchmarks.memeintent.asking import read_scoring
from memantics.benchmarks.memeintent.plugin import find_main
from memantics.benchmarks.registry import find_tasks
from memantics.core.errors import DataError, InputError
from memantics.core.records import Image
from memantics.core.retrieval import read_library
from memantics.core.samples import image_path
from memantics.core.task import Services, Task

SHOWN = """
[[demonstration]]
text = "mind the gap"
image_caption = "a gap"
background = ["platforms have gaps"]
intent = "the meme warns of gaps"
image = "gap.png"

[[demonstration]]
text = "no picture"
image_caption = "nothing"
background = []
intent = "the meme shows nothing"
"""


def make(**options: str) -> Task:
    ref = find_tasks(["memeintent/intent"])[0]
    return ref.make(options, "all", ref.benchmark.sample(), None)


@pytest.fixture
def shown(tmp_path: Path) -> Path:
    shutil.copy(image_path("en-001"), tmp_path / "gap.png")
    path = tmp_path / "mine.toml"
    path.write_text(SHOWN, encoding="utf-8")
    return path


@pytest.mark.parametrize(("role", "pictures"), [("vlm", 1), ("text", 0)])
def test_own_demonstrations_come_with_their_pictures(role: str, pictures: int, shown: Path) -> None:
    task = make(role=role, shots="few", demonstrations=str(shown))
    messages = task.ask(next(task.items()), None).messages
    assert [message.role for message in messages] == ["user", "assistant"] * 2 + ["user"]
    images = [part for own in messages[:-1] for part in own.parts if isinstance(part, Image)]
    assert len(images) == pictures
    assert messages[1].parts == ("the meme warns of gaps",)
    assert task.prompts["demonstrations"] != make(shots="few").prompts["demonstrations"]


def test_the_model_s_own_background_gets_the_same_demonstrations(shown: Path) -> None:
    (need,) = make(shots="few", demonstrations=str(shown), background="auto").needs
    assert need.options["demonstrations"] == str(shown)
    assert "demonstrations" not in make(shots="few", background="auto").needs[0].options


def test_demonstrations_that_cannot_be_shown_are_refused(shown: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="shots=few"):
        make(demonstrations=str(shown))
    with pytest.raises(DataError, match="cannot be read"):
        make(shots="few", demonstrations=str(tmp_path / "none.toml"))
    shown.write_text("[[demonstration]]\ntext = 'x'\n", encoding="utf-8")
    with pytest.raises(DataError, match="image_caption"):
        make(shots="few", demonstrations=str(shown))
    shown.write_text(SHOWN.replace("gap.png", "../gap.png"), encoding="utf-8")
    with pytest.raises(DataError, match="outside"):
        make(shots="few", demonstrations=str(shown))


def test_background_is_found_in_a_folder_with_its_source(tmp_path: Path) -> None:
    item = next(make().items())
    words = item.form.context["text"].split()
    text = f"{' '.join(words)} is a saying.\n\nNothing of the kind.\n"
    (tmp_path / "facts.md").write_text(text, encoding="utf-8")
    task = make(background="retrieved", knowledge=str(tmp_path), passages="1", captions="none")
    found = next(task.items())
    assert found.form.context["background"] == f"* {' '.join(words)} is a saying."
    assert found.tags["sources"] == "facts.md#1"
    assert "is a saying" in str(task.ask(found, None).messages[-1].parts[-1])
    with pytest.raises(InputError, match="background=retrieved"):
        make(knowledge=str(tmp_path))


def test_a_meme_never_gets_its_own_annotations() -> None:
    task = make(background="retrieved", passages="2")
    for item in task.items():
        assert f"meme {item.id}" not in item.tags["sources"].split("; ")


def test_a_library_without_texts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="contains no texts to search"):
        read_library(tmp_path)
    (tmp_path / "a.txt").write_text("one\n\n\ntwo words", encoding="utf-8")
    (tmp_path / "b.png").write_bytes(b"x")
    library = read_library(tmp_path / "a.txt")
    assert [own.source for own in library.passages] == ["a.txt#1", "a.txt#2"]
    assert library.find("nothing shared") == ()
    assert [own.text for own in library.find("WORDS", 5)] == ["two words"]


def test_meaning_is_the_headline_where_a_model_is_given() -> None:

    plain = {"stemmer": "none", "bertscore": "off", "nli": "off"}
    more = {"bertscore_layer": "auto", "bertscore_rescale": "off", "nli_labels": "auto"}
    more |= {"nli_direction": "generated_first", "nli_unit": "whole"}
    for options, main in (
        ({}, "rouge_l"),
        ({"bertscore": "x"}, "bertscore_f1"),
        ({"bertscore": "x", "nli": "y"}, "nli_consistency"),
    ):
        scoring = read_scoring({**plain, **more, **options}, Services())
        assert find_main(scoring, "rouge_l") == main
