"""The lead's page of the guideline, and what people at work see of it."""

from __future__ import annotations

from pathlib import Path

from memantics.annotation.project_settings import LocalizedText
from memantics.core.errors import ModelError
from tests.annotation.web.steps import HARMLESS, open_project, take
from tests.annotation.web.visitors import Office, make_office, open_quick

HARMFUL = {
    **HARMLESS,
    "f-harmful": "yes",
    "k-type": "choice",
    "f-type": "offence",
    "k-modality": "choice",
    "f-modality": "text",
}


def test_a_lead_clarifies_and_people_see_it_before_they_save(
    office: Office, tmp_path: Path
) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    office.hire("bob", project, "annotator")
    ann, bob, lead = (office.visitor(name) for name in ("ann", "bob", "lead"))
    first = take(ann, project)
    assert ann.post(first, HARMLESS).status_code == 303
    assert bob.post(take(bob, project), HARMFUL).status_code == 303
    page = lead.get(f"/p/{project}/guideline").text
    assert "50 % outside the majority" in page
    assert "start the app with --model" in page
    path = f"/p/{project}/guideline"
    assert lead.post(path, {"do": "save", "en": " "}).status_code == 422
    second = take(ann, project)
    assert 'name="guideline" value="1"' in ann.get(second).text
    rule = {"do": "save", "en": "Teasing among friends is harmless.", "zh": "朋友间的玩笑无害。"}
    done = lead.post(path, {**rule, "number": "1", "again": "yes"})
    assert done.headers["location"].endswith("done=clarified")
    late = ann.post(second, {**HARMLESS, "guideline": "1"})
    assert late.status_code == 409
    assert "the guideline changed while you were working" in late.text
    assert "Teasing among friends is harmless." in late.text
    assert ann.post(second, {**HARMLESS, "guideline": "2"}).status_code == 303
    assert take(ann, project) == first
    assert "You annotated this item before" in ann.get(first).text
    assert ann.post(first, {**HARMLESS, "version": "1", "guideline": "2"}).status_code == 303
    assert "You annotated this item before" not in ann.get(first).text


def test_a_model_drafts_and_the_lead_decides(database_url: str, tmp_path: Path) -> None:
    asked = []

    def draft(prompt: str) -> LocalizedText:
        asked.append(prompt)
        if len(asked) > 1:
            raise ModelError("the server is away", hint="try later")
        return LocalizedText(en="Teasing is harmless.", zh="玩笑无害。")

    service = open_quick(database_url, tmp_path / "media")
    office = make_office(service, draft=draft, drafter="openai/toy")
    project = open_project(office, tmp_path, "label-by-vote")
    for name, form in (("ann", HARMLESS), ("bob", HARMFUL)):
        office.hire(name, project, "annotator")
        visitor = office.visitor(name)
        assert visitor.post(take(visitor, project), form).status_code == 303
    lead, path = office.visitor("lead"), f"/p/{project}/guideline"
    page = lead.post(path, {"do": "draft", "number": "1"}).text
    assert "Teasing is harmless." in page
    assert 'name="drafted" value="openai/toy"' in page
    assert 'value="1" checked' in page
    assert "item 1" in asked[0]
    assert service.projects.get(office.lead, project).settings.guideline == 1
    failed = lead.post(path, {"do": "draft"})
    assert failed.status_code == 502
    assert "the server is away" in failed.text
    lead.post(path, {"do": "save", "en": "Teasing is fine.", "drafted": "openai/toy"})
    (added,) = service.projects.get(office.lead, project).settings.clarifications
    assert (added.text.en, added.drafted, added.items) == ("Teasing is fine.", "openai/toy", ())
    service.close()
