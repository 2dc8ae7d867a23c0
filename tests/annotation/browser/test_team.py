"""A team's first days, in real browsers, on both databases.

Five people validate forty questions, three each; they differ in planned places, the lead decides
ties and clarifies the guideline, touched items come again. Figures are computed again by other
libraries, and what was exported trains a detector and becomes a benchmark.
"""

from __future__ import annotations

import csv
import io
import shutil
from collections import Counter
from pathlib import Path

import krippendorff
import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect
from statsmodels.stats.inter_rater import (  # type: ignore[import-untyped]
    aggregate_raters,
    fleiss_kappa,
)

from memantics.core.queue import read_queue
from tests.annotation.browser.site import Site, User
from tests.commands import Shell

pytestmark = pytest.mark.slow

PEOPLE = ("ann", "bob", "cy", "dee", "eve")
KEYS = {"yes": "y", "no": "n", "maybe": "m"}
COUNT = 40
RULE = "A question about the frame of the picture is to the point."


@pytest.fixture(scope="module")
def drafts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Questions that a scripted model drafted about the sample data."""
    shell = Shell(tmp_path_factory.mktemp("drafts"), alone=True)
    shell.done("build", "knowledge", "sample", "--model", "fake/builder", "--limit", "8")
    shell.done("build", "questions", "builds/sample", "--model", "fake/builder")
    return shell.folder / "builds" / "sample"


def plan(person: str, number: int) -> str:
    """What a person says: apart on every fifth item, all three ways on every eighth."""
    place = PEOPLE.index(person)
    if number % 8 == 0:
        return ("yes", "no", "maybe")[(place + number // 8) % 3]
    if number % 5 == 0:
        return "no" if (place + number // 5) % 3 == 0 else "yes"
    return "no" if number % 9 == 4 else "yes"


def number_of(user: User) -> int:
    return int(user.page.locator("h1").inner_text().rsplit(" ", 1)[-1])


def answer(user: User, question: str, note: str = "") -> None:
    """By keyboard: yes to every choice, but as planned to the question."""
    fields: list[str] = user.page.eval_on_selector_all(
        "[data-field]:not([hidden])",
        "all => all.filter(one => one.querySelector('input[type=radio]'))"
        ".map(one => one.dataset.field)",
    )
    user.press(*(KEYS[question] if name == "question" else "y" for name in fields))
    assert len(user.chosen()) >= len(fields)
    if note:
        user.page.locator("[name=f-decision_note]").fill(note)
    user.save()


def vote(people: list[User], project: int) -> dict[int, dict[str, str]]:
    """Everybody in turn, until nobody is offered anything; who said what."""
    said: dict[int, dict[str, str]] = {}
    busy = [user for user in people if user.next(project)]
    while busy:
        for user in list(busy):
            number = number_of(user)
            word = plan(user.name, number)
            said.setdefault(number, {})[user.name] = word
            answer(user, word)
            if "/work/" not in user.page.url:
                busy.remove(user)
    return said


def find_ties(said: dict[int, dict[str, str]]) -> list[int]:
    """Items on which no answer has more than half of the votes."""
    most = {n: max(Counter(votes.values()).values()) for n, votes in said.items()}
    return sorted(number for number, count in most.items() if 2 * count <= len(said[number]))


def download(user: User, project: int, what: str, form: str) -> bytes:
    page = user.go(f"/p/{project}/data")
    with page.expect_download() as waiting:
        page.locator(f'a[href*="what={what}&"][href$="form={form}"]').click()
    return Path(waiting.value.path()).read_bytes()


def decide_ties(lead: User, project: int, ties: list[int]) -> None:
    """The lead finds the items on the page, sees the votes, decides and says why."""
    for number in ties:
        page = lead.go(f"/p/{project}/disagreements?label=maybe&field=question")
        card = find_card(page, number)
        expect(card.get_by_text("Options", exact=True)).to_be_visible()
        card.get_by_role("button", name="Adjudicate").click()
        assert number_of(lead) == number
        expect(
            lead.page.get_by_role("heading", name="Annotations of other annotators")
        ).to_be_visible()
        answer(lead, "yes", "decided by the caption")


def find_card(page: Page, number: int) -> Locator:
    return page.locator("article").filter(
        has=page.get_by_role("link", name=f"Item {number}", exact=True)
    )


def clarify(lead: User, project: int, number: int) -> None:
    """From the item on which people differ to a rule; who judged it judges it again."""
    page = lead.go(f"/p/{project}/disagreements")
    card = find_card(page, number)
    card.get_by_role("link", name="Add a rule").click()
    assert page.locator(f'[name=number][value="{number}"]').is_checked()
    page.locator("#en").fill(RULE)
    page.get_by_role("button", name="Add to the guideline").click()
    expect(page.get_by_text("Rule added to the guideline.")).to_be_visible()


def measure(rows: list[list[str | None]]) -> tuple[float, float, float]:
    """Alpha, Fleiss' kappa and AC1 by other libraries, the last by its formula."""
    codes = {"yes": 0.0, "no": 1.0, "maybe": 2.0}
    data = np.array([[np.nan if one is None else codes[one] for one in row] for row in rows])
    alpha = krippendorff.alpha(reliability_data=data.T, level_of_measurement="nominal")
    votes = np.array([[codes[one] for one in row if one is not None] for row in rows])
    table, _ = aggregate_raters(votes)
    observed = float(((table * (table - 1)).sum(axis=1) / 6).mean())
    shares = table.sum(axis=0) / table.sum()
    chance = float((shares * (1 - shares)).sum() / 2)
    return float(alpha), float(fleiss_kappa(table)), (observed - chance) / (1 - chance)


def check_agreement(site: Site, project: int, said: dict[int, dict[str, str]]) -> None:
    rows = [[votes.get(name) for name in PEOPLE] for _, votes in sorted(said.items())]
    agreements = {one.field: one for one in site.service.lead.agreement(site.lead, project)}
    question = agreements["question"]
    assert (question.items, question.annotators) == (COUNT, 5)
    ours = (question.alpha, question.fleiss, question.ac1)
    assert ours == pytest.approx(measure(rows), abs=1e-9)
    low, high = question.spans["alpha"]
    assert low < (question.alpha or 0) < high


def test_five_people_a_lead_and_forty_questions(site: Site, drafts: Path, tmp_path: Path) -> None:
    build = shutil.copytree(drafts, tmp_path / "build")
    service, boss = site.service, site.lead
    project = service.exchange.make_project(boss, build / "queue").id
    service.exchange.import_queue(boss, project, build / "queue", COUNT)
    service.projects.consent(boss, project)
    people, lead = site.hire(project, ("annotator",), *PEOPLE), site.user("lead")

    said = vote(people, project)
    assert sorted(said) == list(range(1, COUNT + 1))
    assert {len(votes) for votes in said.values()} == {3}
    check_agreement(site, project, said)
    ties = find_ties(said)
    assert ties, "the plan has items on which all three differ"
    progress = service.lead.progress(boss, project)
    assert progress.finished == COUNT - len(ties)
    decide_ties(lead, project, ties)
    assert service.lead.progress(boss, project).finished == COUNT

    # A rule that settles one item: its three people, and nobody else, see it again.
    touched = next(n for n, votes in sorted(said.items()) if len(set(votes.values())) == 2)
    clarify(lead, project, touched)
    asked = [user for user in people if user.next(project)]
    assert sorted(user.name for user in asked) == sorted(said[touched])
    for user in asked:
        assert number_of(user) == touched
        expect(user.page.get_by_text(RULE)).to_be_visible()
        user.page.locator('[name=f-question][value="yes"]').check(force=True)
        user.save()
        said[touched][user.name] = "yes"
    check_agreement(site, project, said)

    # What the lead downloads says the same, and under which version of the guideline.
    table = list(csv.DictReader(io.StringIO(download(lead, project, "individual", "csv").decode())))
    keys = [item.id for item in read_queue(build / "queue")[1]]
    judged = [row for row in table if row["field"] == "question" and row["stage"] == "judge"]
    assert Counter(row["value"] for row in judged) == Counter(
        word for votes in said.values() for word in votes.values()
    )
    later = {row["item"] for row in judged if row["guideline"] == "2"}
    assert later == {keys[touched - 1]}
    decided = {row["item"] for row in table if row["stage"] == "settle_ties"}
    assert decided == {keys[number - 1] for number in ties}

    publish_and_train(site, lead, project, build, tmp_path)


def publish_and_train(site: Site, lead: User, project: int, build: Path, folder: Path) -> None:
    shell = Shell(folder, alone=True)
    (build / "queue" / "annotations.jsonl").write_bytes(
        download(lead, project, "annotations", "jsonl")
    )
    kept = {str(row["item"]) for row in site.aggregated(project, "item", "kept") if row["kept"]}
    shell.done("publish", "build", "--name", "team_questions", "--licence", "CC0-1.0")
    card = (folder / "published" / "team_questions" / "README.md").read_text()
    assert f"{len(kept)} " in card
    shell.done("run", "team_questions", "-m", "fake/keys")
    (folder / "votes.csv").write_bytes(download(lead, project, "data", "csv"))
    named = ("--label", "question", "--text", "text", "--id", "id")
    shell.done("data", "add", "votes.csv", *named)
    shell.done(
        "detector", "train", "--data", "votes/question=no", "--preset", "fast", "--split", "all"
    )
    assert (folder / "detector.zip").stat().st_size > 1000
