"""All six workflows, driven by several people with keyboard and mouse, on both databases.

What comes out is compared with what votes, drops, restores and means give by hand.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect
from pydantic import JsonValue
from statsmodels.stats.inter_rater import (  # type: ignore[import-untyped]
    aggregate_raters,
    fleiss_kappa,
)

from memantics.annotation.workflow import workflow_text
from memantics.core.queue import QueueItem, Shown
from tests.annotation.browser.site import Site, User
from tests.annotation.team import PASSWORD, make_queue, plain_items

pytestmark = pytest.mark.slow


def open_queue(site: Site, folder: Path, workflow: str, items: list[QueueItem]) -> int:
    queue = make_queue(folder / "queue", workflow, items)
    return site.service.exchange.open_queue(site.lead, queue).id


def test_validate(site: Site, tmp_path: Path) -> None:
    shown = [
        Shown(label="knowledge", value="It shows a keyboard."),
        Shown(label="question", value="What does it show?"),
        Shown(label="answer", value="a keyboard"),
    ]
    items = [QueueItem(id=f"m{n}", group=f"m{n}", shown=shown) for n in (1, 2, 3)]
    project = open_queue(site, tmp_path, "validate", items)
    # The lead invites two people; they accept, read the warning and begin.
    lead, people = site.user("lead"), []
    for name in ("ann", "rob"):
        page = lead.go(f"/p/{project}/members")
        page.locator('form[action$="/invite"] input[value=annotator]').check()
        page.get_by_role("button", name="Create a link").click()
        link = page.locator("#link").input_value()
        person = site.visitor()
        person.page.goto(link)
        person.page.get_by_label("Name").fill(name)
        person.page.locator("#password").fill(PASSWORD)
        person.page.locator("#again").fill(PASSWORD)
        person.page.get_by_role("button", name="Accept").click()
        expect(person.page.get_by_role("heading", name="Before you begin")).to_be_visible()
        person.page.get_by_role("checkbox").check()
        person.page.get_by_role("button", name="Start").click()
        person.page.get_by_role("link", name="Continue").click()
        people.append(person)
    ann, rob = people
    assert ann.chosen() == []
    ann.press("y", "y", "y")
    assert ann.chosen() == ["yes", "yes", "yes"]
    ann.save()
    rob.press("y", "y", "n")
    rob.save()
    # "I don't understand this meme" takes the questions away.
    assert "Item 3" in ann.next(project)
    ann.press("u")
    expect(ann.page.get_by_text("Is the question relevant to the meme?")).to_be_hidden()
    ann.save()
    expect(ann.page.get_by_role("heading", name="No items for you")).to_be_visible()
    assert site.aggregated(project, "item", "kept") == [
        {"item": "m1", "kept": True},
        {"item": "m2", "kept": False},
        {"item": "m3", "kept": False},
    ]


def test_collect_and_edit_then_review(site: Site, tmp_path: Path) -> None:
    project = open_queue(site, tmp_path, "collect-and-edit", plain_items(2))
    first, second, third = site.hire(project, ("annotator",), "ann", "rob", "cy")
    first.next(project)
    first.press("e")
    first.page.keyboard.insert_text("mocks robots")
    first.press("Enter")
    first.page.keyboard.insert_text("asks for help")
    first.save()
    first.next(project)
    first.write("x")
    first.save()
    # The second sees what stands and its history, and puts the second intent first.
    second.next(project)
    expect(second.page.locator(".history > li")).to_have_count(1)
    rows = second.page.locator("textarea[name=f-intents]")
    rows.nth(1).focus()
    second.press("Alt+ArrowUp")
    second.page.locator("textarea[name=f-background]").fill("robots must deny it")
    second.save()
    second.next(project)
    second.page.get_by_role("button", name="Add").first.click()
    second.page.keyboard.insert_text("y")
    second.save()
    third.next(project)
    values = [node.input_value() for node in third.page.locator("textarea[name=f-intents]").all()]
    assert values == ["asks for help", "mocks robots"]
    third.page.get_by_role("button", name="Add").first.click()
    third.page.keyboard.insert_text("complains")
    third.save()
    third.next(project)
    third.save()
    # Two others review each intent: correctness, then completeness, intent by intent.
    reviewers = site.hire(project, ("reviewer",), "rev", "rex")
    ratings = [(("5", "5", "3", "5", "4", "5"), "3535"), (("4", "4", "5", "5", "4", "1"), "3525")]
    for reviewer, (one, two) in zip(reviewers, ratings, strict=True):
        assert "Item 1" in reviewer.next(project)
        reviewer.press(*one)
        reviewer.save()
        reviewer.press(*two)
        reviewer.save()
    # Of the first, "mocks robots" falls (3); of the second none stays, and "x" is best (3, 3).
    assert site.aggregated(project, "item", "intents", "background") == [
        {
            "item": "m1",
            "intents": ["asks for help", "complains"],
            "background": ["robots must deny it"],
        },
        {"item": "m2", "intents": ["x"], "background": None},
    ]


def test_label_by_vote(site: Site, tmp_path: Path) -> None:
    gold: dict[str, JsonValue] = {"harmful": "no"}
    trial = [QueueItem(id=f"g{n}", group=f"g{n}", gold=gold) for n in range(2)]
    text = workflow_text("label-by-vote")
    short = text.replace("size = 10", "size = 1").replace("rounds = 3", "rounds = 2")
    project = site.service.projects.create(site.lead, "Vote", short).id
    queue = make_queue(tmp_path / "queue", "label-by-vote", [*trial, *plain_items(3)])
    site.service.exchange.import_queue(site.lead, project, queue)
    ann, rob, cy = site.hire(project, ("annotator",), "ann", "rob", "cy")
    for person, trials in ((ann, "n"), (rob, "yn"), (cy, "n")):
        _train(person, project, trials)
    votes = (
        (ann, (("n",), ("y", "1", "q", "a"), ("y", "2", "w"))),
        (rob, (("n",), ("y", "1", "q", "a"), ("y", "3", "t"))),
        (cy, (("y", "2", "w"), ("y", "2", "w"), ("y", "4", "r"))),
    )
    for person, answers in votes:
        person.next(project)
        for keys in answers:
            person.press(*keys)
            person.save()
    # Three types for the last one: an adjudicator decides, and sees what the others said.
    (judge,) = site.hire(project, ("adjudicator",), "judge")
    judge.next(project)
    expect(judge.page.get_by_text("Annotations of other annotators")).to_be_visible()
    expect(judge.page.locator("table").get_by_text("Dispirited culture")).to_be_visible()
    assert judge.chosen() == []
    judge.press("y", "3", "t")
    judge.save()
    names = ("item", "harmful", "type", "modality", "target")
    assert [tuple(row.values()) for row in site.aggregated(project, *names)] == [
        ("m1", "no", None, None, None),
        ("m2", "yes", "targeted", "fusion", "gender"),
        ("m3", "yes", "innuendo", "image", None),
    ]
    # Live agreement on "harmful": by hand, and by another library.
    page = site.user("lead").go(f"/p/{project}/agreement")
    cells = page.get_by_role("row", name="Is this meme harmful?").locator("td").all_inner_texts()
    table, _ = aggregate_raters([["no", "no", "yes"], ["yes"] * 3, ["yes"] * 3])
    assert cells[1:5] == ["3", "3", "78 %", "67 %"]
    assert cells[6].splitlines()[0] == f"{fleiss_kappa(table):.2f}"  # below it, the interval


def _train(person: User, project: int, answers: str) -> None:
    for number, key in enumerate(answers):
        assert person.next(project)
        person.press(key, *(("2", "w") if key == "y" else ()))
        person.save()
        expect(person.page.get_by_role("heading", name="expected answer")).to_be_visible()
        verdict = "different" if key == "y" else "correct"
        expect(person.page.locator("td .tag").first).to_have_text(verdict)
        if number == len(answers) - 1:
            expect(person.page.get_by_text("Passed: you can start with real items")).to_be_visible()


def test_verify_stages(site: Site, tmp_path: Path) -> None:
    drafts: dict[str, JsonValue] = {
        "source_emotion": "sad",
        "description": "a dog in the rain",
        "target_emotion": "happy",
        "rewritten": "sun",
        "plan": "add sun",
    }
    items = [item.model_copy(update={"values": drafts}) for item in plain_items(3)]
    project = open_queue(site, tmp_path, "verify-stages", items)
    people = site.hire(project, ("annotator",), "ann", "rob")
    done = 0
    for turn in range(20):
        person = people[turn % 2]
        heading = person.next(project)
        if not heading:
            if turn and not people[(turn + 1) % 2].next(project):
                break
            continue
        expect(person.page.get_by_text("Current values")).to_be_visible()
        if "Emotion" in heading and "Item 2" in heading:
            person.press("x")
        elif "Plan" in heading and "Item 1" in heading:
            person.press("r", "2")
            person.page.get_by_label("Rewritten caption").fill("rain")
            person.page.get_by_label("Visual edits").fill("add rain")
        elif "Edited" in heading and "Item 3" in heading:
            person.press("r")
            person.page.get_by_label("What should change?").fill("the hand")
        elif "Emotion" in heading:
            person.press("a", "a")
        else:
            person.press("a")
        person.save()
        done += 1
    assert done == 7
    names = ("item", "kept", "source_emotion", "target_emotion", "rewritten", "plan", "reason")
    rows = [tuple(row.values()) for row in site.aggregated(project, *names)]
    assert rows[0] == ("m1", True, "sad", "calm", "rain", "add rain", "")
    assert (rows[1][1], rows[1][-1]) == (False, "removed at emotion")
    assert (rows[2][1], rows[2][-1]) == (False, "to be regenerated")


def test_pun_form(site: Site, tmp_path: Path) -> None:
    project = open_queue(site, tmp_path, "pun-form", plain_items(2))
    people = site.hire(project, ("annotator",), "ann", "rob", "cy")
    pun = ("yes", "堡", "饱")
    said = [
        (("吃堡了", *pun, "3", "6", "any"), ("ok", "no", "1", "6", "a")),
        (("吃堡了", *pun, "3", "6", "anyone"), ("ok", "no", "1", "4", "b")),
        (("吃堡", "no", "1", "6", "x"), ("ok", "no", "2", "5", "c")),
    ]
    for person, forms in zip(people, said, strict=True):
        person.next(project)
        for form in forms:
            _fill_pun(person, form)
            person.save()
    # Three sentiments for the second: somebody decides.
    (judge,) = site.hire(project, ("adjudicator",), "judge")
    judge.next(project)
    _fill_pun(judge, ("ok", "no", "1", "5", "ruled"))
    judge.save()
    names = ("caption", "pun", "pun_word", "homophone", "sentiment_target", "sentiment_type")
    rows = site.aggregated(project, *names, "explanation")
    assert [tuple(row.values()) for row in rows] == [
        ("吃堡了", "yes", "堡", "饱", "other", "negative", "anyone"),
        ("ok", "no", None, None, "self", "neutral", "ruled"),
    ]


def _fill_pun(person: User, form: tuple[str, ...]) -> None:
    """Fill the form in with keys alone; letters typed into a field choose nothing."""
    caption, verdict, *words, target, kind, explanation = form
    person.write(caption)
    assert person.chosen() == []
    person.press("ArrowDown", verdict[0])
    for word in words:
        person.write(word)
        person.press("ArrowDown")
    person.press(target, kind)
    person.write(explanation)


def test_rate_outputs(site: Site, tmp_path: Path) -> None:
    hidden: dict[str, JsonValue] = {"a": "model-x", "b": "model-y"}
    pair = Shown(label="pair", value=["text of a", "text of b"], kind="pair")
    output = Shown(label="output", value="The meme mocks robots.")
    items = [
        QueueItem(id="m1", group="m1", shown=[output], hidden={"model": "model-x"}),
        QueueItem(id="m2", group="m2", shown=[pair], hidden=hidden),
        QueueItem(id="m3", group="m3", shown=[pair], hidden=hidden),
    ]
    project = open_queue(site, tmp_path, "rate-outputs", items)
    raters = site.hire(project, ("annotator",), "ann", "rob")
    ratings = (("5", "4", "3"), ("3", "4", "4"))
    for rater, keys in zip(raters, ratings, strict=True):
        while heading := rater.next(project):
            assert "model-" not in rater.page.content()
            assert rater.chosen() == []
            if rater.page.locator(".pair").count():
                first = "text of a" in rater.page.locator(".pair > div").first.inner_text()
                # "a" wins the second item, the third is a tie.
                rater.press("3" if "Item 3" in heading else "1" if first else "2")
            else:
                rater.press(*keys)
            rater.save()
    names = ("completeness", "relevance", "correctness", "preference")
    rows = [tuple(row.values()) for row in site.aggregated(project, *names)]
    assert rows == [(4.0, 4.0, 3.5, None), (None, None, None, "a"), (None, None, None, "tie")]
    # For the lead alone: who won how often, ties counting half.
    page = site.user("lead").go(f"/p/{project}/agreement")
    wins = page.get_by_role("row", name="model-x").locator("td").inner_text()
    assert wins == "75 %"
