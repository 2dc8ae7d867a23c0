"""Pages on which a lead sets up a team, sees where it differs, and decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memantics.core.queue import Shown
from tests.annotate.team import work_through
from tests.annotate.web.steps import open_project
from tests.annotate.web.visitors import Office


def shown(place: int) -> list[Shown]:
    return [Shown(label="Explanation", value=f"what item {place + 1} means")]


@pytest.fixture
def project(office: Office, tmp_path: Path) -> int:
    """Three people who differ on the first item of two, and noted why on none."""
    number = open_project(office, tmp_path, "validate", 2, shown=shown)
    office.service.projects.change(office.lead, number, {"people": 3})
    office.service.projects.consent(office.lead, number)
    for name, word in (("ann", "yes"), ("bob", "no"), ("cy", "maybe")):
        actor = office.hire(name, number, "annotator")
        work_through(
            office.service,
            actor,
            number,
            lambda task, word=word: {
                "question": word if task.number == 1 else "yes",
                "answer": "yes",
            },  # type: ignore[misc]
        )
    return number


def test_a_disagreement_has_picture_text_votes_and_a_way_on(office: Office, project: int) -> None:
    lead = office.visitor("lead")
    page = lead.get(f"/p/{project}/disagreements").text
    assert page.count("<article") == 1
    assert "what item 1 means" in page
    assert re.search(r'class="frame veiled"', page)
    assert [word for word in ("P02", "P03", "P04") if f"<bdi>{word}</bdi>" in page] == [
        "P02",
        "P03",
        "P04",
    ]
    hidden = lead.get(f"/p/{project}/disagreements?names=hidden").text
    assert "<bdi>P02</bdi>" not in hidden
    assert "<bdi>A</bdi>" in hidden
    found = {
        query: lead.get(f"/p/{project}/disagreements?{query}").text.count("<article")
        for query in ("one=P02&other=P03", "field=answer", "label=maybe", "label=absent", "days=1")
    }
    assert list(found.values()) == [1, 0, 1, 0, 1]
    guideline = lead.get(f"/p/{project}/guideline?number=1").text
    assert re.search(r'name="number" value="1" checked', guideline)


def test_a_lead_decides_and_the_page_says_so(office: Office, project: int) -> None:
    lead = office.visitor("lead")
    place = lead.post(f"/p/{project}/decide/1").headers["location"]
    page = lead.get(place).text
    assert "What the others said" in page
    answer = {"version": "0", "project": str(project), "k-question": "choice", "f-question": "yes"}
    answer |= {"k-answer": "choice", "f-answer": "yes", "k-unclear": "flag"}
    answer |= {"k-decision_note": "longtext", "f-decision_note": "the caption says it"}
    assert lead.post(place, answer).status_code == 303
    page = lead.get(f"/p/{project}/disagreements").text
    assert "the caption says it" in page
    assert "Decide and explain" not in page
    again = lead.post(f"/p/{project}/decide/1").headers["location"]
    assert again == place


def test_agreement_is_shown_with_intervals_labels_and_pairs(office: Office, project: int) -> None:
    page = office.visitor("lead").get(f"/p/{project}/agreement").text
    for words in ("Gwet AC1", "Label by label", "Who reads differently from whom", "Look at these"):
        assert words in page
    assert f"/p/{project}/disagreements?one=P02&amp;other=P03" in page


def test_overlap_is_set_where_a_project_is_made_and_changed(office: Office) -> None:
    lead = office.visitor("lead")
    form = {"title": "New", "workflow": "validate", "people": "2", "shared": "10"}
    form |= {"adjudicator": "vote", "order": "given", "random_share": "20", "prelabels": ""}
    place = lead.post("/projects/new", form | {"daily_limit": ""}).headers["location"]
    number = int(place.split("/")[2])
    made = office.service.projects.get(office.lead, number)
    assert (made.settings.people, made.settings.shared) == (2, 0.1)
    assert (made.settings.adjudicator, made.settings.daily_limit) == ("vote", 300)
    page = lead.get(f"/p/{number}/setup").text
    assert re.search(r'name="people"[^>]*value="2"', page)
    form = {"people": "4", "adjudicator": "lead", "prelabels": "hidden", "training": "on"}
    assert lead.post(f"/p/{number}/setup", form).status_code == 303
    changed = office.service.projects.get(office.lead, number).settings
    assert (changed.people, changed.shared, changed.adjudicator) == (4, 0.1, "lead")
    assert lead.post(f"/p/{number}/setup", form | {"people": "51"}).status_code == 422
