"""Steps of the five papers, walked in a browser as the papers describe them.

What other modules of this folder walk is not walked again: MemeIntent's chain and its reviews,
ToxiCN's votes, MER-Bench's stages, PunMemeCN's form (``test_workflows.py``), M-QUEST's team
(``test_team.py``).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from pydantic import JsonValue

from memantics.annotation.records import Preferences
from memantics.construction.queues import make_questionnaire
from memantics.core.queue import QueueItem, Shown
from tests.annotation.browser.site import Site, User
from tests.annotation.team import PASSWORD, make_queue, plain_items

pytestmark = pytest.mark.slow
SAD: dict[str, JsonValue] = {"negative": "yes", "source_emotion": "sad"}


def open_queue(site: Site, folder: Path, workflow: str, items: list[QueueItem]) -> int:
    queue = make_queue(folder / "queue", workflow, items)
    return site.service.exchange.open_queue(site.lead, queue).id


def count_asked(user: User) -> int:
    """How many fields with a choice of several answers are open."""
    found = user.page.locator("[data-field]:not([hidden])")
    return found.filter(has=user.page.locator("input[type=radio]")).count()


def test_mquest_asks_at_most_six_judgements_and_at_least_one(
    local_site: Site, tmp_path: Path
) -> None:
    texts = {"knowledge": "A statement.", "element": "An element.", "question": "Who?"}
    texts |= {"answer": "A cat.", "second question": "Where?", "second answer": "At home."}
    shown = [Shown(label=label, value=text) for label, text in texts.items()]
    items = [
        QueueItem(id="all", group="all", shown=shown),
        QueueItem(id="least", group="least", shown=shown[2:4]),
    ]
    project = open_queue(local_site, tmp_path, "validate", items)
    (judge,) = local_site.hire(project, ("annotator",), "judge")
    judge.next(project)
    assert count_asked(judge) == 6
    judge.press("y", "y", "y", "y", "n", "y")
    judge.save()
    assert count_asked(judge) == 2
    # A question that is not to the point is one judgement enough to leave the item out.
    judge.press("n", "y")
    judge.save()
    kept = local_site.aggregated(project, "item", "kept")
    assert kept == [{"item": "all", "kept": True}, {"item": "least", "kept": False}]


def test_memeintent_trains_people_before_they_write(local_site: Site, tmp_path: Path) -> None:
    gold = [QueueItem(id="g", group="g", gold={"intents": ["mocks Mondays"]})]
    project = open_queue(local_site, tmp_path, "collect-and-edit", [*gold, *plain_items(1)])
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    ann.next(project)
    expect(ann.page.get_by_text("Training, round 1")).to_be_visible()
    ann.write("something else")
    ann.save()
    expect(ann.page.get_by_text("mocks Mondays")).to_be_visible()
    ann.page.get_by_role("link", name="Continue").click()
    expect(ann.page.get_by_text("annotator 1 of 3")).to_be_visible()
    assert ann.page.locator("textarea[name=f-intents]").first.input_value() == "", "from nothing"


def test_toxicn_asks_who_people_are_and_whether_they_know_the_memes(
    local_site: Site, tmp_path: Path
) -> None:
    forms = make_questionnaire(tmp_path / "q", 2, "zh").folder
    project = local_site.service.exchange.open_queue(local_site.lead, forms).id
    knows, other = local_site.hire(project, ("annotator",), "knows", "other")
    actor = local_site.service.accounts.log_in("knows", PASSWORD).actor
    local_site.service.accounts.set_preferences(actor, Preferences(language="zh"))
    for person, right in ((knows, True), (other, False)):
        person.next(project)
        person.press("y", "f", "2", "a", "p", *(("1" if right else "2") * 5))
        person.save()
        expect(person.page.locator("h1")).to_have_text("谢谢" if right else "Thank you")
    lead = local_site.user("lead")
    assert "form-001" not in lead.go(f"/p/{project}/items").content(), "not shown individually"
    lead.window.errors.clear()  # the browser notes the answer 403 on its console
    data = local_site.service.exchange.export(local_site.lead, project, "annotations").data
    assert [b'"kept":true' in line for line in data.splitlines()] == [True, False]
    assert b"knows" not in data


def test_mer_finds_resolves_and_trains(local_site: Site, tmp_path: Path) -> None:
    """A pilot divides people, the lead writes a rule, they judge again; newcomers train first."""
    project = open_queue(local_site, tmp_path, "find-emotions", plain_items(2))
    people = local_site.hire(project, ("annotator",), "ann", "bob", "cy")
    for person, keys in zip(people, (("y", "1"), ("y", "1"), ("y", "2")), strict=True):
        person.next(project)
        for _ in range(2):
            person.press(*keys)
            person.save()
    lead = local_site.user("lead")
    page = lead.go(f"/p/{project}/guideline")
    for box in page.locator("[name=number]").all():
        box.check()
    page.locator("#en").fill("A wilted plant is sad.")
    page.get_by_role("button", name="Add to the guideline").click()
    for person in people:
        person.next(project)
        for _ in range(2):
            expect(person.page.get_by_text("A wilted plant is sad.")).to_be_visible()
            expect(person.page.get_by_text("You annotated this item before")).to_be_visible()
            person.page.locator('[name=f-source_emotion][value="sad"]').check(force=True)
            person.save()
    assert local_site.aggregated(project, "source_emotion") == [{"source_emotion": "sad"}] * 2
    page = lead.go(f"/p/{project}/setup")
    page.locator("#train_on").fill("1, 2")
    page.locator("main form button.main").click()
    expect(page.get_by_text("Training items: 2")).to_be_visible()
    (dee,) = local_site.hire(project, ("annotator",), "dee")
    dee.next(project)
    expect(dee.page.get_by_text("Training, round 1: 0 of 2")).to_be_visible()
    dee.press("y", "1")
    dee.save()
    expect(dee.page.get_by_text("Training: expected answer")).to_be_visible()


def test_punmemecn_chats_and_printed_texts_are_corrected(local_site: Site, tmp_path: Path) -> None:
    turns = "A: The printer jams again.\nB: Look at my empty bowl."
    chat = Shown(label="Chat", value=turns.splitlines())
    chats = [
        QueueItem(id=f"c{n}", group=f"c{n}", shown=[chat], values={"turns": turns})
        for n in (1, 2, 3)
    ]
    project = open_queue(local_site, tmp_path, "edit-chats", chats)
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    ann.next(project)
    ann.press("k")
    ann.save()
    ann.press("c")
    text = ann.page.locator("[name=f-turns]")
    assert text.input_value().replace("\r", "") == turns, "people start from the draft"
    text.fill("A: The printer jams again.")
    ann.save()
    ann.press("x")
    ann.save()
    rows = local_site.aggregated(project, "kept", "turns")
    assert [row["kept"] for row in rows] == [True, True, False]
    assert rows[1]["turns"] == "A: The printer jams again."
    read = [QueueItem(id="t", group="t", values={"readable": "yes", "text": "HELL0"})]
    queue = make_queue(tmp_path / "texts", "review-text", read, title="Texts")
    other = local_site.service.exchange.open_queue(local_site.lead, queue).id
    local_site.service.projects.add_member(local_site.lead, other, "ann", ["annotator"])
    actor = local_site.service.accounts.log_in("ann", PASSWORD).actor
    local_site.service.projects.consent(actor, other)
    ann.next(other)
    box = ann.page.locator("[name=f-text]")
    expect(box).to_have_value("HELL0")
    box.fill("HELLO")
    ann.save()
    assert local_site.aggregated(other, "text", "kept") == [{"text": "HELLO", "kept": True}]
