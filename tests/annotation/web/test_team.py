"""Pages on which a lead sets up a team, sees where it differs, and decides."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from memantics.core.queue import Shown
from tests.annotation.team import work_through
from tests.annotation.web.steps import open_project, take
from tests.annotation.web.visitors import Office

VOTE = {"version": "0", "project": "1", "k-question": "choice", "f-question": "yes"}
VOTE |= {"k-answer": "choice", "f-answer": "yes"}


def shown(place: int) -> list[Shown]:
    return [Shown(label="Explanation", value=f"what item {place + 1} means")]


@pytest.fixture
def project(office: Office, tmp_path: Path) -> int:
    """Three people who differ on the first item of two, and noted why on none."""
    number = open_project(office, tmp_path, "validate", 2, shown=shown)
    office.service.projects.change(office.lead, number, {"annotators_per_item": 3})
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
    assert "Annotations of other annotators" in page
    answer = {"version": "0", "project": str(project), "k-question": "choice", "f-question": "yes"}
    answer |= {"k-answer": "choice", "f-answer": "yes", "k-unclear": "flag"}
    answer |= {"k-decision_note": "longtext", "f-decision_note": "the caption says it"}
    assert lead.post(place, answer).status_code == 303
    page = lead.get(f"/p/{project}/disagreements").text
    assert "the caption says it" in page
    assert ">Adjudicate<" not in page
    again = lead.post(f"/p/{project}/decide/1").headers["location"]
    assert again == place


def test_agreement_is_shown_with_intervals_labels_and_pairs(office: Office, project: int) -> None:
    page = office.visitor("lead").get(f"/p/{project}/agreement").text
    for words in (
        "Gwet AC1",
        "Agreement by label",
        "Agreement by pair of annotators",
        "View these",
    ):
        assert words in page
    assert f"/p/{project}/disagreements?one=P02&amp;other=P03" in page


def test_overlap_is_set_where_a_project_is_made_and_changed(office: Office) -> None:
    lead = office.visitor("lead")
    form = {"title": "New", "workflow": "validate", "annotators_per_item": "2", "overlap": "10"}
    form |= {
        "adjudicator": "extra-annotator",
        "order": "given",
        "random_proportion": "20",
        "prelabels": "",
    }
    place = lead.post("/projects/new", form | {"daily_limit": ""}).headers["location"]
    number = int(place.split("/")[2])
    made = office.service.projects.get(office.lead, number)
    assert (made.settings.annotators_per_item, made.settings.overlap) == (2, 0.1)
    assert (made.settings.adjudicator, made.settings.daily_limit) == ("extra-annotator", 300)
    page = lead.get(f"/p/{number}/setup").text
    assert re.search(r'name="annotators_per_item"[^>]*value="2"', page)
    form = {
        "annotators_per_item": "4",
        "adjudicator": "lead",
        "prelabels": "hidden",
        "training": "on",
    }
    assert lead.post(f"/p/{number}/setup", form).status_code == 303
    changed = office.service.projects.get(office.lead, number).settings
    assert (changed.annotators_per_item, changed.overlap, changed.adjudicator) == (4, 0.1, "lead")
    assert lead.post(f"/p/{number}/setup", form | {"annotators_per_item": "51"}).status_code == 422


def test_training_language_and_questionnaire_are_set_in_both_forms(office: Office) -> None:
    lead = office.visitor("lead")
    form = {"title": "New", "workflow": "validate", "language": "zh", "pass_mark": "80"}
    form |= {"test": "yes", "questionnaire": "https://example.org/you", "weekly_limit": "90"}
    number = int(lead.post("/projects/new", form).headers["location"].split("/")[2])
    made = office.service.projects.get(office.lead, number)
    said = made.settings
    assert (made.language, said.pass_mark, said.feedback) == ("zh", 0.8, False)
    assert (said.questionnaire, said.weekly_limit) == ("https://example.org/you", 90)
    page = lead.get(f"/p/{number}/setup").text
    assert re.search(r'name="pass_mark"[^>]*value="80"', page)
    assert '<option value="zh" selected' in page
    assert 'href="https://example.org/you"' in lead.get(f"/p/{number}/welcome").text
    link = lead.post(f"/p/{number}/invite", {"role": "annotator"}).text
    found = re.search(r"/join/[\w-]+[?]lang=zh", link)
    assert found is not None
    assert "加入项目" in office.visitor().get(found[0]).text
    form = {"language": "en", "pass_mark": "50", "training": "on"}
    assert lead.post(f"/p/{number}/setup", form).status_code == 303
    changed = office.service.projects.get(office.lead, number)
    said = changed.settings
    assert (changed.language, said.pass_mark, said.feedback) == ("en", 0.5, True)
    for wrong in ({"pass_mark": "101"}, {"questionnaire": "ftp://x"}, {"train_on": "1, 7"}):
        answer = lead.post(f"/p/{number}/setup", form | wrong)
        assert answer.status_code == 422, wrong


def test_a_test_says_only_at_its_end_how_it_went(office: Office, tmp_path: Path) -> None:
    """Expected answers would tell those who come later what to say."""
    project = open_project(office, tmp_path, "validate", 2, shown=shown)
    ann, lead = office.hire("ann", project, "annotator"), office.visitor("lead")
    work_through(office.service, ann, project, lambda _: {"question": "yes", "answer": "yes"})
    form = {"pass_mark": "50", "test": "yes", "training": "on", "train_on": "1 2"}
    assert lead.post(f"/p/{project}/setup", form).status_code == 303
    assert "Training items: 2" in lead.get(f"/p/{project}/setup").text
    office.hire("zoe", project, "annotator")
    zoe = office.visitor("zoe")
    pages = []
    for _ in range(2):
        place = take(zoe, project)
        assert "Test, round 1" in zoe.get(place).text
        pages.append(zoe.post(place, VOTE))
    assert pages[0].status_code == 303
    assert "The test is complete" in pages[1].text
    assert "Expected" not in pages[1].text
