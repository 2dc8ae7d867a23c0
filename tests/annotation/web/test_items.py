"""The item in hand, without a script: drafts, tabs, undo, skips, limits, training."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pydantic import JsonValue

from memantics.annotation.project_settings import ProjectSettings
from memantics.annotation.records import Preferences
from memantics.core.queue import Shown
from tests.annotation.team import Clock
from tests.annotation.web.queues import questions
from tests.annotation.web.steps import HARMLESS, actor, open_project, take
from tests.annotation.web.visitors import Office, make_office, open_quick


def test_nothing_is_preselected_and_the_picture_is_blurred(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    page = ann.get(take(ann, project)).text
    form = page[page.index('<form method="post" action="/work/') :]
    assert " checked" not in form
    assert 'class="frame veiled"' in page
    office.service.accounts.set_preferences(
        actor(office, "ann"), Preferences(blur=False, grey=True)
    )
    page = ann.get(take(ann, project)).text
    assert "veiled" not in page
    assert '<body class="grey">' in page


def test_an_incomplete_answer_is_kept_as_a_draft_and_says_what_is_missing(
    office: Office, tmp_path: Path
) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    answer = ann.post(place, HARMLESS | {"f-harmful": "yes", "k-type": "choice"})
    assert answer.status_code == 422
    assert "This field is required." in answer.text
    # A screen reader says it with the field.
    assert 'aria-describedby="f-type-error" aria-invalid="true"' in answer.text
    assert '<p class="error" id="f-type-error">' in answer.text
    assert re.search(r'value="yes" data-key="y" checked', ann.get(place).text)
    office.service.accounts.set_preferences(actor(office, "ann"), Preferences(language="zh"))
    again = ann.post(place, HARMLESS | {"f-harmful": "yes", "k-type": "choice"})
    assert "此项为必填" in again.text


def test_a_draft_comes_back_and_ends_with_the_answer(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "pun-form")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    draft = {"k-caption": "text", "f-caption": "half a capt"}
    kept = ann.post(f"{place}/draft", draft, accept="application/json")
    assert kept.json() == {"kept": True}
    assert 'value="half a capt"' in ann.get(place).text
    assert take(ann, project) == place


def test_a_draft_that_comes_late_does_not_hide_the_answer(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert ann.post(place, HARMLESS).status_code == 303
    late = ann.post(f"{place}/draft", HARMLESS | {"f-harmful": "yes"}, accept="application/json")
    assert late.status_code == 409
    assert re.search(r'value="no" data-key="n" checked', ann.get(place).text)


def test_two_tabs_never_overwrite_each_other_unseen(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    first, second = office.visitor("ann"), office.visitor("ann")
    place = take(first, project)
    assert take(second, project) == place
    assert first.post(place, HARMLESS).status_code == 303
    other = HARMLESS | {
        "f-harmful": "yes",
        "k-type": "choice",
        "f-type": "offence",
        "k-modality": "choice",
        "f-modality": "text",
    }
    conflict = second.post(place, other)
    assert conflict.status_code == 409
    assert "in another tab" in conflict.text
    for text in (
        "Not harmful",
        "General offence, no target",
        "Save my version",
        "Keep the saved version",
    ):
        assert text in conflict.text
    version = re.search(r'name="version" value="(\d+)"', conflict.text)
    assert version is not None
    assert second.post(place, other | {"version": version[1]}).status_code == 303
    history = office.service.lead.items(office.lead, project, limit=1, offset=0)[0].history
    assert [step.values["harmful"] for step in history] == ["no", "yes"]
    # The first tab tries once more with what it saw, and is told as well.
    assert first.post(place, HARMLESS | {"version": "1"}).status_code == 409
    assert first.post(f"{place}/keep").status_code == 303
    assert re.search(r'value="yes" data-key="y" checked', first.get(place).text)


def test_the_same_answer_sent_twice_is_saved_once(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert [ann.post(place, HARMLESS).status_code for _ in range(2)] == [303, 303]
    history = office.service.lead.items(office.lead, project, limit=1, offset=0)[0].history
    assert len(history) == 1


@pytest.mark.slow
def test_three_people_saving_at_once_keep_all_answers(office: Office, tmp_path: Path) -> None:
    """The tool that this one replaces kept 1 of 180."""
    project = open_project(office, tmp_path, "label-by-vote", 60)
    names = ("ann", "rob", "cy")
    for name in names:
        office.hire(name, project, "annotator")

    def work(name: str) -> list[int]:
        visitor = office.visitor(name)
        token = visitor.token()
        answers = []
        for _ in range(60):
            place = take(visitor, project)
            answers.append(visitor.client.post(place, data=HARMLESS | {"token": token}).status_code)
        return answers

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(work, names)) == [[303] * 60] * 3
    items = office.service.lead.items(office.lead, project, limit=100, offset=0)
    assert sum(len(item.history) for item in items) == 180
    assert all(len({step.person for step in item.history}) == 3 for item in items)


def test_an_item_that_went_on_to_somebody_else_gives_the_text_back(tmp_path: Path) -> None:
    clock = Clock()
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media", clock)
    office = make_office(service)
    project = open_project(office, tmp_path, "validate", 1, shown=questions)
    office.hire("ann", project, "annotator")
    office.hire("rob", project, "annotator")
    ann, rob = office.visitor("ann"), office.visitor("rob")
    place = take(ann, project)
    clock.forward(31 * 60)
    assert take(rob, project) == place
    form = {"version": "0", "project": "1", "k-unclear": "flag", "f-unclear": "true"}
    late = ann.post(place, form)
    assert late.status_code == 409
    assert "This item is now assigned to someone else" in late.text
    assert "I do not understand this meme" in late.text
    assert rob.post(place, form | {"f-unclear": ""} | questions_yes()).status_code == 303
    service.close()


def questions_yes() -> dict[str, str]:
    names = ("knowledge", "question", "answer")
    return {f"k-{name}": "choice" for name in names} | {f"f-{name}": "yes" for name in names}


def test_undo_and_back_to_the_last_item(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    ann.post(place, HARMLESS)
    page = ann.get(take(ann, project)).text
    assert f'href="{place}"' in page
    assert f'action="{place}/undo"' in page
    assert place in ann.get(f"/p/{project}/last").text
    assert ann.post(f"{place}/undo", {"version": "1"}).status_code == 303
    # The answer is open again, and what was said is a draft to start from.
    page = ann.get(place).text
    assert "Draft restored" in page
    assert "Skip this meme for any reason" in page
    assert office.service.work.standing(actor(office, "ann"), project).done == 0
    assert ann.post(place, HARMLESS | {"version": "2"}).status_code == 303


def test_a_skip_asks_nothing_and_the_meme_never_comes_back(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote", 2)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    answer = ann.post(f"{place}/skip")
    assert (answer.status_code, answer.headers["location"]) == (
        303,
        f"/p/{project}/next?done=skipped",
    )
    other = take(ann, project)
    assert other != place
    ann.post(other, HARMLESS)
    nothing = ann.get(f"/p/{project}/next")
    assert nothing.status_code == 200
    assert "No items for you" in nothing.text


def test_an_item_given_back_comes_to_somebody_else(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate", 1, shown=questions)
    office.hire("ann", project, "annotator")
    office.hire("rob", project, "annotator")
    ann, rob = office.visitor("ann"), office.visitor("rob")
    place = take(ann, project)
    assert "No items for you" in rob.get(f"/p/{project}/next").text
    assert ann.post(f"{place}/release").status_code == 303
    assert take(rob, project) == place
    assert ann.get(place).status_code == 403


def test_the_limit_of_a_day_is_kept_by_the_server(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.service.projects.set_settings(office.lead, project, ProjectSettings(daily_limit=1))
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert ann.post(place, HARMLESS).status_code == 303
    answer = ann.get(f"/p/{project}/next")
    assert answer.status_code == 429
    assert "You have seen 1 memes today" in answer.text


def test_after_a_while_a_break_is_suggested_once(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    person = office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert "Consider taking a break" not in ann.get(place).text
    pauses = office.app.state.client.pauses
    since, last = pauses._spans[person.id]
    pauses._spans[person.id] = (since - 41 * 60, last)
    assert "Consider taking a break" in ann.get(place).text
    assert "Consider taking a break" not in ann.get(place).text


def test_more_rows_without_a_script(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "collect-and-edit")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    form = {
        "version": "0",
        "project": str(project),
        "k-intents": "ranked",
        "f-intents": ["second", "first", "third"],
        "f-intents-rank": ["2", "1", "3"],
        "k-background": "list",
    }
    page = ann.post(place, form | {"more": "yes"})
    assert page.status_code == 200
    texts = re.findall(r'name="f-intents" [^>]*>([^<]*)</textarea>', page.text)
    assert texts[:6] == ["first", "second", "third", "", "", ""]
    assert ann.post(place, form).status_code == 303
    answer = office.service.lead.items(office.lead, project, limit=1, offset=0)[0].history[-1]
    assert answer.values["intents"] == ["first", "second", "third"]


TYPED: dict[str, JsonValue] = {"type": "offence", "modality": "text"}


def test_training_says_what_was_expected(office: Office, tmp_path: Path) -> None:
    gold = {"harmful": "no"}
    project = open_project(office, tmp_path, "label-by-vote", 11, gold=gold)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert "Training, round 1" in ann.get(place).text
    page = ann.post(place, HARMLESS)
    assert page.status_code == 200
    assert "Correct in this round: 100 %" in page.text
    assert page.text.count("tag good") >= 1


@pytest.mark.parametrize(("mark", "passed"), [(0.0, True), (1.0, False)])
def test_a_test_tells_its_end_and_where_to_go(
    office: Office, tmp_path: Path, mark: float, passed: bool
) -> None:
    project = open_project(office, tmp_path, "label-by-vote", 1, gold={"harmful": "yes"} | TYPED)
    changes = {"pass_mark": mark, "feedback": False}
    office.service.projects.change(office.lead, project, changes)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    page = ann.post(take(ann, project), HARMLESS)
    assert "The test is complete" in page.text
    assert "Correct in this round: 0 %" in page.text
    assert (f'href="/p/{project}/next"' in page.text) is passed
    assert ("contact the project lead" in page.text) is not passed


@pytest.mark.parametrize(
    ("pace", "said"), [(15 * 59 - 1, "59 min"), (15 * 60, "1.0 h"), (15 * 90, "1.5 h")]
)
def test_the_work_that_is_left_is_said_in_minutes_or_hours(
    office: Office, tmp_path: Path, pace: float, said: str
) -> None:
    project = open_project(office, tmp_path, "label-by-vote", 2)
    for name in ("ann", "bob", "cy"):
        person = office.hire(name, project, "annotator")
        task = office.service.work.next(person, project)
        assert task is not None
        office.service.work.submit(person, task.assignment, {"harmful": "no"}, 0, pace)
    assert office.service.lead.progress(office.lead, project).left == 4  # three, and one for a tie
    assert f"<dd>{said}</dd>" in office.visitor("lead").get(f"/p/{project}/progress").text


def test_a_review_names_the_elements_that_lack_a_rating(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "collect-and-edit", 1)
    for name in ("ann", "rob", "cy"):
        person = office.hire(name, project, "annotator")
        task = office.service.work.next(person, project)
        assert task is not None
        office.service.work.submit(person, task.assignment, {"intents": ["one", "two"]}, 0)
    office.hire("rev", project, "reviewer")
    rev = office.visitor("rev")
    place = take(rev, project)
    assert rev.get(place).text.count("<blockquote>") == 2
    form = {
        "version": "0",
        "project": str(project),
        "k-correctness": "scale:2",
        "f-correctness-0": "5",
        "k-completeness": "scale:2",
        "f-completeness-0": "5",
        "f-completeness-1": "4",
    }
    page = rev.post(place, form)
    assert page.status_code == 422
    assert page.text.count("This field is required.") == 1
    assert rev.post(place, form | {"f-correctness-1": "3"}).status_code == 303
    answer = office.service.lead.items(office.lead, project, limit=1, offset=0)[0].history[-1]
    assert answer.values == {"correctness": [5, 3], "completeness": [5, 4]}


def test_every_step_of_a_scale_shows_its_text(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "collect-and-edit", 1)
    for name in ("ann", "rob", "cy"):
        person = office.hire(name, project, "annotator")
        task = office.service.work.next(person, project)
        assert task is not None
        office.service.work.submit(person, task.assignment, {"intents": ["one"]}, 0)
    office.hire("rev", project, "reviewer")
    rev = office.visitor("rev")
    page = rev.get(take(rev, project)).text
    texts = ("strongly disagree", "disagree", "neither", "agree", "strongly agree")
    steps = "".join(f"<span>{step} = {text}</span>" for step, text in enumerate(texts, 1))
    assert page.count(f'<div class="anchors quiet small">{steps}</div>') == 2


@pytest.mark.parametrize("options", [["a cat", "a dog"], ["A. a cat", "B. a dog"]])
def test_every_option_has_one_letter(office: Office, tmp_path: Path, options: list[str]) -> None:
    shown = [Shown(label="options", value=options, kind="options")]
    project = open_project(office, tmp_path, "validate", 1, shown=shown)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    listed = '<ol type="A"><li><bdi>a cat</bdi></li><li><bdi>a dog</bdi></li></ol>'
    assert listed in ann.get(take(ann, project)).text


def test_a_vote_before_the_picture_was_shown_is_not_saved(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert '<input type="hidden" name="veiled" value="1">' in ann.get(place).text
    blind = ann.post(place, HARMLESS | {"veiled": "1"})
    assert blind.status_code == 422
    assert "view the image first" in blind.text
    assert re.search(r'value="no" data-key="n" checked', ann.get(place).text)  # kept as a draft
    assert ann.post(place, HARMLESS | {"veiled": "1", "seen": "1"}).status_code == 303
    # What was saved may be changed without looking again; who sees pictures at once may save.
    assert 'name="veiled"' not in ann.get(place).text
    office.service.accounts.set_preferences(actor(office, "ann"), Preferences(blur=False))
    assert 'name="veiled"' not in ann.get(take(ann, project)).text


def test_everybody_may_leave_and_what_they_said_stays(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann, lead = office.visitor("ann"), office.visitor("lead")
    assert ann.post(take(ann, project), HARMLESS).status_code == 303
    assert ann.post(f"/p/{project}/leave").headers["location"] == "/?done=left"
    assert ann.get(f"/p/{project}").status_code == 403
    assert "lastlead" in lead.post(f"/p/{project}/leave").headers["location"]
    assert lead.get(f"/p/{project}").status_code in (200, 303)
    (said,) = office.service.lead.items(office.lead, project, limit=1)[0].history
    assert said.values == {"harmful": "no"}
