"""Queues that no model drafts: a questionnaire, texts to correct, errors to code."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from pydantic import JsonValue

import memantics as mm
from memantics.annotation.errors import Forbidden
from memantics.annotation.service import AnnotationService
from memantics.annotation.values import visible
from memantics.annotation.workflow import read_workflow
from memantics.construction.queues import (
    apply_texts,
    make_error_queue,
    make_questionnaire,
    make_text_queue,
    normalise,
)
from memantics.core.errors import DataError, InputError
from memantics.core.queue import AggregatedAnnotation, read_queue, write_annotations
from memantics.core.samples import image_path
from tests.annotation.team import PASSWORD
from tests.commands import Shell
from tests.runs import pick, write_run


def test_a_questionnaire_asks_for_consent_first(tmp_path: Path) -> None:
    done = make_questionnaire(tmp_path / "people", 3)
    card, items = read_queue(done.folder)
    assert (card.workflow, len(items), done.items) == ("questionnaire", 3, 3)
    flow = read_workflow("questionnaire")
    fields = flow.stages[0].fields
    assert visible(flow, fields, {"consent": "no"}, frozenset()) == ("consent",)
    assert visible(flow, fields, {"consent": "yes"}, frozenset()) == fields
    with pytest.raises(InputError, match="a questionnaire needs at least one annotator"):
        make_questionnaire(tmp_path / "none", 0)


def test_texts_are_corrected_and_put_back(tmp_path: Path) -> None:
    folder = tmp_path / "memes"
    folder.mkdir()
    lines = []
    for name, text in (("a", "one  does\nnot"), ("b", "???")):
        shutil.copy(image_path("en-001"), folder / f"{name}.png")
        lines.append({"id": name, "image": f"{name}.png", "text": text, "mine": 1})
    body = "".join(json.dumps(line) + "\n" for line in lines)
    (folder / "memes.jsonl").write_text(body, encoding="utf-8")
    done = make_text_queue(folder, tmp_path / "queue")
    _, items = read_queue(done.folder)
    assert [item.values["text"] for item in items] == ["one does not", "???"]
    assert [len(item.shown) for item in items] == [1, 0], "shown where normalising changed it"
    assert all((done.folder / item.images[0]).is_file() for item in items)
    annotations = [
        AggregatedAnnotation(
            item="a", group="a", workflow="review-text", kept=True, values={"text": "one!"}
        ),
        AggregatedAnnotation(item="b", group="b", workflow="review-text", kept=False, values={}),
    ]
    path = tmp_path / "annotations.jsonl"
    write_annotations(path, annotations)
    found = apply_texts(folder, path)
    assert (found.changed, found.unreadable) == (1, 1)
    lines_after = (folder / "memes.jsonl").read_text(encoding="utf-8").splitlines()
    after = [json.loads(line) for line in lines_after]
    assert [own["text"] for own in after] == ["one!", "???"]
    assert [own.get("kept", True) for own in after] == [True, False]
    assert after[0]["mine"] == 1, "fields of others stay"
    write_annotations(path, [annotations[0].model_copy(update={"workflow": "validate"})])
    with pytest.raises(DataError, match="does not contain corrected texts"):
        apply_texts(folder, path)
    with pytest.raises(InputError, match="file not found"):
        apply_texts(tmp_path, path)
    assert normalise(" \n") == ""


def test_items_that_most_runs_miss_are_coded(tmp_path: Path) -> None:
    form = pick("A", "B")
    tags = {"dimension": "Scene", "kind": "R"}

    def run(name: str, wrong: str) -> Path:
        answers = {key: "Answer: B" if key in wrong else "Answer: A" for key in "123"}
        return write_run(
            tmp_path / name, "mquest/qa", answers, golds=dict.fromkeys("123", "A"),
            form=form, tags=tags, model=f"fake/{name}",
        )  # fmt: skip

    runs = [run("x", "12"), run("y", "1")]
    done = make_error_queue(runs, tmp_path / "errors")
    card, items = read_queue(done.folder)
    assert card.workflow == "code-errors"
    assert [item.id for item in items] == ["1", "2"], "half of the runs are enough"
    assert "fake" not in (done.folder / "items.jsonl").read_text(encoding="utf-8")
    assert make_error_queue(runs, tmp_path / "all", 1.0).items == 1
    with pytest.raises(InputError, match="no item was answered wrong by enough runs"):
        make_error_queue([run("z", "")], tmp_path / "none")
    with pytest.raises(InputError, match="no run"):
        make_error_queue([], tmp_path / "none")


def test_a_questionnaire_is_opened_without_images(
    service: AnnotationService, tmp_path: Path
) -> None:
    """The app takes items without a picture."""
    lead = service.accounts.create_first("lead", PASSWORD)
    project = service.exchange.open_queue(lead, make_questionnaire(tmp_path / "q", 2).folder)
    service.projects.set_roles(lead, project.id, lead.id, ("lead", "annotator"))
    service.projects.consent(lead, project.id)
    task = service.work.next(lead, project.id)
    assert task is not None
    service.work.submit(
        lead, task.assignment, {"consent": "yes", "gender": "female"}, task.version, 5.0
    )
    made = service.exchange.export(lead, project.id, "annotations").data
    (found,) = (own for own in map(json.loads, made.splitlines()) if own["annotations"])
    assert found["kept"] is True, found
    assert found["annotations"][0]["values"]["gender"] == "female"


RIGHT = {"heard": "sad", "letters": "best", "social": "shame", "lying": "rest", "broken": "moved"}


def test_who_knows_too_little_of_chinese_memes_is_not_kept(
    service: AnnotationService, tmp_path: Path
) -> None:
    """Four of five right are enough, three are not; nobody sees which answers are right."""
    lead = service.accounts.create_first("lead", PASSWORD)
    forms = make_questionnaire(tmp_path / "q", 2, "zh").folder
    project = service.exchange.open_queue(lead, forms).id
    for name, wrong in (("ann", 1), ("bob", 2)):
        person = service.accounts.create(lead, name, PASSWORD)
        service.projects.add_member(lead, project, name, ("annotator",))
        service.projects.consent(person, project)
        task = service.work.next(person, project)
        assert task is not None
        assert "at_least" not in repr(task)
        said: dict[str, JsonValue] = {**RIGHT, **dict.fromkeys(list(RIGHT)[:wrong], "unsure")}
        values = {"consent": "yes", "gender": "female", **said}
        service.work.submit(person, task.assignment, values, task.version, 5.0)
    path = forms / "annotations.jsonl"
    path.write_bytes(service.exchange.export(lead, project, "annotations").data)
    found = {
        (own["kept"], own["reason"]) for own in map(json.loads, path.read_bytes().splitlines())
    }
    assert found == {(True, ""), (False, "not proficient")}
    sheet = mm.paper("toxicn_mm", data="sample", annotations=[forms], parts=["Table 2"])
    cells = {(row.section, row.label): row.cells[0].value for row in sheet.parts[0].rows}
    assert cells["proficiency", "passed"] == cells["proficiency", "not passed"] == 1
    assert cells["gender", "female"] == 1, "who failed is not counted"


def test_what_people_are_and_what_they_vote_share_no_database(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead = service.accounts.create_first("lead", PASSWORD)
    forms = make_questionnaire(tmp_path / "q", 4).folder
    project = service.exchange.open_queue(lead, forms).id
    service.exchange.open_queue(lead, make_questionnaire(tmp_path / "more", 1).folder)
    with pytest.raises(InputError, match="contains a personal questionnaire"):
        service.projects.create(lead, "individual", "label-by-vote")
    for name, gender in (("zoe", "male"), ("bob", "female"), ("cy", "female")):
        person = service.accounts.create(lead, name, PASSWORD)
        service.projects.add_member(lead, project, name, ("annotator",))
        service.projects.consent(person, project)
        task = service.work.next(person, project)
        assert task is not None
        values: dict[str, JsonValue] = {"consent": "yes", "gender": gender}
        service.work.submit(person, task.assignment, values, task.version, 5.0)
        assert service.work.next(person, project) is None, "nobody fills in two"
    lines = service.exchange.export(lead, project, "annotations").data.splitlines()
    votes = [vote for line in lines for vote in json.loads(line)["annotations"]]
    assert {(vote["annotator"], vote["at"]) for vote in votes} == {("", "")}
    assert [vote["values"]["gender"] for vote in votes] == ["female", "female", "male"], (
        "forms are in no order that tells who came when"
    )
    for what in ("raw", "aggregated", "labelstudio", "audit"):
        with pytest.raises(Forbidden, match="only be exported as annotations"):
            service.exchange.export(lead, project, what)
    with pytest.raises(Forbidden, match="not shown individually"):
        service.lead.items(lead, project)
    with pytest.raises(Forbidden, match="not shown individually"):
        service.lead.item(lead, 1)


def test_a_database_with_votes_takes_no_questionnaire(
    service: AnnotationService, tmp_path: Path
) -> None:
    lead = service.accounts.create_first("lead", PASSWORD)
    service.projects.create(lead, "individual", "label-by-vote")
    with pytest.raises(InputError, match="is a personal questionnaire"):
        service.exchange.open_queue(lead, make_questionnaire(tmp_path / "q", 3).folder)
    assert len(service.projects.mine(lead)) == 1


def test_the_commands_say_how_to_open_what_they_wrote(shell: Shell) -> None:
    """Their folders are called as they are: 'annotate texts' would be the command again."""
    memes = shell.folder / "memes"
    memes.mkdir()
    shutil.copy(image_path("en-001"), memes / "a.png")
    line = json.dumps({"id": "a", "image": "a.png", "text": "two\nlines"}) + "\n"
    (memes / "memes.jsonl").write_text(line, encoding="utf-8")
    told = shell.done("annotate", "questionnaire")
    assert "memantics annotate open questionnaire --db people.db" in told
    assert "memantics annotate open texts" in shell.done("annotate", "texts", "memes")
    write_annotations(
        shell.folder / "v.jsonl",
        [
            AggregatedAnnotation(
                item="a", group="a", workflow="review-text", kept=True, values={"text": "two"}
            )
        ],
    )
    assert "1 texts changed" in shell.done("annotate", "apply-texts", "memes", "v.jsonl")
    assert json.loads((memes / "memes.jsonl").read_text(encoding="utf-8"))["text"] == "two"
    made = shell.done("run", "toxicn_mm/detection", "-m", "fake/keys", "--data", "sample", "--json")
    [run] = json.loads(made)
    assert "memantics annotate open errors" in shell.done("annotate", "errors", run["folder"])
