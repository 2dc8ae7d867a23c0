"""Tables that others read, read by others: pyarrow, datasets, LaTeX."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from pyarrow import parquet

from memantics.annotation.commands import Storage, export_annotations, import_annotations
from memantics.annotation.errors import UnsupportedFormat
from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.annotation.tables import write_latex
from memantics.core.errors import InputError
from memantics.core.queue import QueueItem, Shown
from tests.annotation.team import (
    add_people,
    answer_by_number,
    lines_of,
    make_queue,
    open_project,
    plain_items,
    work_through,
)

SAID = {"ann": "yyn", "bob": "yny", "cy": "yyy"}


def voted(service: AnnotationService, folder: Path) -> tuple[Actor, int]:
    """Three items that three people judged: the second and third two to one."""
    items = [
        QueueItem(id=f"m{n}", group=f"m{n}", shown=[Shown(label="text", value=f"=text {n}")])
        for n in (1, 2, 3)
    ]
    lead, project = open_project(service, folder / "q", "validate", items)
    service.projects.change(lead, project.id, {"annotators_per_item": 3})
    words = {"y": "yes", "n": "no"}
    people = add_people(service, lead, project.id, list(SAID), ["annotator"])
    for name, actor in zip(SAID, people, strict=True):
        table = {
            place: {"question": words[word], "answer": "yes"}
            for place, word in enumerate(SAID[name], 1)
        }
        work_through(service, actor, project.id, answer_by_number(table))
    return lead, project.id


def test_wide_and_long_tables_say_the_same(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = voted(service, tmp_path)
    wide = lines_of(service.exchange.export(lead, project, "data", "jsonl").data)
    long = lines_of(service.exchange.export(lead, project, "individual", "jsonl").data)
    assert [(row["id"], row["text"], row["kept"], row["question"]) for row in wide] == [
        ("m1", "=text 1", True, "yes"),
        ("m2", "=text 2", True, "yes"),
        ("m3", "=text 3", True, "yes"),
    ]
    cells = {(row["item"], row["field"], row["annotator"]): row["value"] for row in long}
    assert cells == {
        (row["id"], *name.rsplit(":", 1)): value
        for row in wide
        for name, value in row.items()
        if ":" in name and value is not None
    }
    assert cells["m3", "question", "P02"] == "no"
    assert {row["guideline"] for row in long} == {1}
    # As CSV, no cell is a formula; as Parquet, other programs read the types.
    table = service.exchange.export(lead, project, "data", "csv").data.decode()
    assert next(csv.DictReader(io.StringIO(table)))["text"] == "'=text 1"
    packed = service.exchange.export(lead, project, "individual", "parquet").data
    assert parquet.read_table(io.BytesIO(packed)).num_rows == len(long)


def test_agreement_as_table_and_as_latex(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = voted(service, tmp_path)
    rows = lines_of(service.exchange.export(lead, project, "agreement", "jsonl").data)
    agreements = {one.field: one for one in service.lead.agreement(lead, project)}
    question = next(row for row in rows if row["field"] == "question")
    assert question["alpha"] == agreements["question"].alpha
    assert [question["ac1_low"], question["ac1_high"]] == list(agreements["question"].spans["ac1"])
    latex = service.exchange.export(lead, project, "agreement", "tex").data.decode()
    assert r"\begin{tabular}{@{}p{.26\linewidth}rrrrrr@{}}" in latex
    assert "Is the question relevant to the meme? & 3 & 3 & 55.6 & " in latex
    assert r"$-$0.29\\{\scriptsize [$-$0.50, $-$0.12]}" in latex
    with pytest.raises(UnsupportedFormat):
        service.exchange.export(lead, project, "agreement", "zip")


HOSTILE = r"a_b & 50 % of #1 {x} ~ ^ \input{secret} $5"


def test_nothing_in_a_latex_table_is_a_command(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = voted(service, tmp_path)
    agreements = service.lead.agreement(lead, project)
    latex = write_latex(agreements, {one.field: HOSTILE for one in agreements}).decode()
    assert r"% \usepackage{booktabs}" in latex
    latex = re.sub(r"\\begin{tabular}\[t\].*?\\end{tabular}", "0", latex)
    body = latex.split("\\toprule\n")[1].split("\\bottomrule")[0].replace("\\midrule\n", "")
    rows = [line.removesuffix(r" \\") for line in body.splitlines()]
    columns = 1 + len(re.findall(r"linewidth}(r+)@", latex)[0])
    assert [len(re.split(r"(?<!\\)&", row)) for row in rows] == [columns] * len(rows)
    for row in rows[1:]:
        label = re.split(r"(?<!\\)&", row)[0]
        assert not re.search(r"(?<!\\)[%#_~^]", label.replace(r"\_", "")), label
        assert r"\input" not in label
    assert len(rows) == 1 + sum(one.items > 0 for one in agreements)


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="no LaTeX is installed")
def test_latex_compiles(service: AnnotationService, tmp_path: Path) -> None:
    lead, project = voted(service, tmp_path)
    agreements = service.lead.agreement(lead, project)
    table = service.exchange.export(lead, project, "agreement", "tex").data.decode()
    hostile = write_latex(agreements, {one.field: HOSTILE for one in agreements}).decode()
    head = r"\documentclass{article}\usepackage{booktabs}\begin{document}"
    (tmp_path / "t.tex").write_text(f"{head}\n{table}\n{hostile}\n" + r"\end{document}")
    call = ["pdflatex", "-halt-on-error", "t.tex"]
    done = subprocess.run(call, cwd=tmp_path, check=False, capture_output=True)
    assert done.returncode == 0, done.stdout[-2000:]
    log = (tmp_path / "t.log").read_text(encoding="utf-8", errors="replace")
    assert "Overfull" not in log, "a column of an article holds the table"


@pytest.mark.slow
@pytest.mark.parametrize("pictures", [True, False])
def test_datasets_loads_the_folder(
    service: AnnotationService, tmp_path: Path, pictures: bool
) -> None:
    from datasets import load_dataset

    lead, project = voted(service, tmp_path)
    if not pictures:
        alone = QueueItem(id="m4", group="m4", shown=[Shown(label="text", value="alone")])
        more: list[tuple[QueueItem, Sequence[Path]]] = [(alone, ())]
        service.exchange.import_items(lead, project, more)
    made = service.exchange.export(lead, project, "huggingface", "zip").data
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        archive.extractall(tmp_path / "hf")
    loaded = load_dataset(str(tmp_path / "hf"), split="train", cache_dir=str(tmp_path / "cache"))
    rows = list(loaded)
    card = (tmp_path / "hf" / "README.md").read_text(encoding="utf-8")
    assert " annotations under version 1. Annotators" in card
    assert [row["id"] for row in rows[:3]] == ["m1", "m2", "m3"]
    assert [row["question"] for row in rows[:3]] == ["yes", "yes", "yes"]
    votes = {
        (vote["annotator"], vote["value"])
        for vote in rows[2]["annotations"]
        if vote["field"] == "question"
    }
    assert votes == {("P02", "no"), ("P03", "yes"), ("P04", "yes")}
    if pictures:
        assert rows[0]["image"].size == (40, 30)
    else:
        assert rows[-1]["text"] == "alone"


def test_by_command_the_name_of_the_file_says_the_form(tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "q", "label-by-vote", plain_items(2))
    storage = Storage(str(tmp_path / "lab.db"))
    import_annotations(storage, queue)
    export_annotations(storage, 1, tmp_path / "data.csv", "data")
    assert (tmp_path / "data.csv").read_text().startswith("id,group,image,")
    table = list(csv.DictReader(io.StringIO((tmp_path / "data.csv").read_text())))
    assert [(tmp_path / row["image"]).is_file() for row in table] == [True, True]
    export_annotations(storage, 1, tmp_path / "data.zip", "data")
    with zipfile.ZipFile(tmp_path / "data.zip") as archive:
        assert set(archive.namelist()) == {"data.csv", *(row["image"] for row in table)}
    export_annotations(storage, 1, tmp_path / "votes.jsonl", "individual")
    assert (tmp_path / "votes.jsonl").read_bytes() == b""
    export_annotations(storage, 1, tmp_path / "hf", "huggingface")
    rows = (tmp_path / "hf" / "train" / "metadata.jsonl").read_text().splitlines()
    assert [json.loads(row)["id"] for row in rows] == ["m1", "m2"]
    with pytest.raises(InputError, match="already exists"):
        export_annotations(storage, 1, tmp_path / "hf", "huggingface")
