"""Judgements that were made elsewhere are imported from a copy without any image."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import memantics as mm
from memantics.core.errors import DataError, InputError
from memantics.evaluation.datasets import add_release
from tests.mer_bench.samples import reply
from tests.readers.test_mer_bench import entry, write

EDITORS = {"editors": "Flux9B+QwenEdit"}


@pytest.fixture(autouse=True)
def _release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMANTICS_HOME", str(tmp_path / "home"))
    write(tmp_path / "clone", [entry(1), entry(2)])
    add_release("mer_bench", tmp_path / "clone")


def test_judgements_need_no_images_that_nobody_is_asked_about(tmp_path: Path) -> None:
    names = [f"{editor}/{n}.png" for editor in ("Flux9B", "QwenEdit") for n in (1, 2)]
    rows = [{"id": name, "answer": orjson.dumps(reply()).decode()} for name in names[:3]]
    path = tmp_path / "mine.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, rows)))
    settings = mm.ImportSettings(data="release", options=EDITORS, out=tmp_path / "runs")
    done = mm.import_answers(path, task="mer_bench/judge", model="mine", settings=settings)
    assert (done.answers, done.without_answer) == (3, 1)
    assert done.run.counts["answered"] == 3
    value = done.run.scores["rfs"].value
    assert value is not None
    assert value > 0.5


def test_editors_are_named_where_no_folder_names_them(tmp_path: Path) -> None:
    path = tmp_path / "mine.csv"
    path.write_text("id,answer\nFlux9B/1.png,x\n", encoding="utf-8")
    settings = mm.ImportSettings(data="release", out=tmp_path / "runs")
    with pytest.raises(
        DataError, match=r"name the editors of the judged edits: --set editors=NAME"
    ):
        mm.import_answers(path, task="mer_bench/judge", model="mine", settings=settings)


def test_a_model_that_is_asked_needs_the_images() -> None:
    with pytest.raises(
        InputError, match="no edited images found in data/EditedResults or EditedResults"
    ):
        mm.evaluate(
            "mer_bench/judge",
            "fake/keys",
            settings=mm.EvaluationSettings(data="release", options=EDITORS),
        )
