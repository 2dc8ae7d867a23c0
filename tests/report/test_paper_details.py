"""Details of single pages: own dimensions, traits, kept intents, contrasts, quoted rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from memantics.benchmarks.memeintent.paper import _place, _read_ratings
from memantics.benchmarks.mquest.paper import PAPER, figure_2, figure_5, table_1, traits
from memantics.benchmarks.paper import PaperMaterial
from memantics.benchmarks.paper_file import DeclaredPart, read_paper_file
from memantics.benchmarks.published import read_published
from memantics.benchmarks.registry import find_benchmark
from memantics.core.data import Source
from memantics.core.queue import (
    AggregatedAnnotation,
    IndividualAnnotation,
    QueueCard,
    QueueItem,
    Review,
    Reviewed,
)

HOME = find_benchmark("mquest").home
FILE = read_paper_file(HOME / "paper.toml")


def make_material(**changes: Any) -> PaperMaterial[Any]:
    made: PaperMaterial[Any] = PaperMaterial(
        "mine", Source("release", Path()), None, {}, {},
        read_published(HOME / "expected" / "published.json"), compared=False,
        systems=PAPER.systems,
    )  # fmt: skip
    return replace(made, **changes)


def declared(label: str, material: PaperMaterial[Any]) -> DeclaredPart:
    (part,) = (part for part in FILE.part if part.label == label)
    return part.settle(material, FILE)


def test_dimensions_of_ones_own_have_columns_and_rows() -> None:
    """Eight memes with 33 questions, 3 of them in a dimension that the paper does not know."""
    values = {
        "questions.dimension.Toxicity": 30,
        "questions.dimension.Wordplay": 3,
        "questions.total": 33,
        "memes": 8,
    }
    material = make_material(values=values)
    shown = table_1(material, declared("Table 1", material))
    assert shown.columns[-3:] == ("Wordplay", "Unique Memes", "Avg. Q&As per Meme")
    last = dict(zip(shown.columns, shown.rows[-1].cells, strict=True))
    assert (last["Toxicity"].value, last["Wordplay"].value) == (30, 3)
    assert last["Avg. Q&As per Meme"].value == 4.12
    assert all(len(row.cells) == len(shown.columns) for row in shown.rows)
    five = figure_5(material, declared("Figure 5", material))
    assert "Wordplay" in {row.label for row in five.rows}
    two = figure_2(material, declared("Figure 2", material))
    assert "Wordplay" in {row.label for row in two.rows}


def test_traits_describe_further_models_and_move_none_of_the_paper() -> None:
    told = {
        "openai/Qwen/Qwen2-VL-7B-Instruct": {"reasoning": "no"},
        "mine/new": {"reasoning": "no"},
    }
    plain, named = make_material(), make_material(traits=told)
    part = declared("Table 2 by model traits", plain)
    before = {row.section: row.cells[0] for row in traits(plain, part).rows}
    after = {row.section: row.cells[0] for row in traits(named, part).rows}
    assert before == after
    assert any("openai/Qwen/Qwen2-VL-7B" in note for note in traits(named, part).notes)
    assert not any("mine/new" in note for note in traits(named, part).notes)


def reviewed(*ratings: Sequence[int]) -> Review:
    votes = [
        IndividualAnnotation(annotator=f"P{n}", stage="review", values={"correctness": list(given)})
        for n, given in enumerate(ratings)
    ]
    annotation = AggregatedAnnotation(
        item="m1", group="m1", workflow="collect-and-edit", kept=True, values={}, annotations=votes
    )
    item = Reviewed(QueueItem(id="m1", group="m1"), {}, annotation)
    return Review(Path(), QueueCard(title="", workflow="collect-and-edit"), (item,))


@pytest.mark.parametrize(
    ("ratings", "kept"),
    [
        (([5, 3], [5, 5]), [5.0]),  # the second has one rating below 4, and a mean of 4
        (([4, 4], [4, 5]), [4.0, 4.5]),
        (([3, 2], [5, 2]), [4.0]),  # none is left: the best comes back
        (([3, 3], [3, 3]), [3.0, 3.0]),
    ],
)
def test_ratings_are_those_of_kept_intents(ratings: Any, kept: list[float]) -> None:
    material = make_material(reviews=(reviewed(*ratings),))
    assert list(_read_ratings(material, "correctness")) == kept


def test_contrasts_go_from_less_to_more() -> None:
    assert sorted(["human", "auto", "none"], key=_place) == ["none", "auto", "human"]
    assert sorted(["few", "zero"], key=_place) == ["zero", "few"]


def test_quoted_rows_stand_on_the_pages() -> None:
    intent = read_paper_file(find_benchmark("memeintent").home / "paper.toml")
    parts = {part.label: part for part in intent.part}
    assert (0.015, 0.287, 0.899, 0.339) in {row.cells for row in parts["Table 3"].rows}
    assert any("damaged" in note for note in parts["Table 3"].notes)
    assert parts["Table 1"].columns == ("Task", "Topics", "Size")
    assert len(parts["Table 1"].rows) == 15
    assert {"Figure 2", "Appendix A and Figure 7", "Figure 8"} <= parts.keys()
    (works,) = (part for part in FILE.part if part.label == "Table 3")
    assert (len(works.rows), len(works.columns)) == (40, 12)
