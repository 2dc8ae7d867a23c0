"""What only a browser can tell: drafts, tabs, keys, blur, phones, and life without a script."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Route, expect
from pydantic import JsonValue

from memantics.annotation.records import Preferences
from tests.annotation.browser.site import Site, User
from tests.annotation.team import PASSWORD, make_queue, plain_items
from tests.annotation.web.queues import make_queue as make_sample_queue


def open_project(site: Site, folder: Path, workflow: str, count: int = 3) -> int:
    queue = make_queue(folder / "queue", workflow, plain_items(count))
    return site.service.exchange.open_queue(site.lead, queue).id


def checked(user: User, value: str) -> bool:
    return value in user.chosen()


@pytest.mark.slow
def test_drafts_are_kept_while_typing_and_come_back(local_site: Site, tmp_path: Path) -> None:
    project = open_project(local_site, tmp_path, "pun-form")
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    ann.next(project)
    ann.write("half a sentence")
    ann.press("ArrowDown", "y")
    expect(ann.page.get_by_text("Draft saved")).to_be_visible()
    again = local_site.user("ann")
    again.next(project)
    expect(again.page.get_by_label("Caption, exactly as printed")).to_have_value("half a sentence")
    assert again.chosen() == ["yes"]
    expect(again.page.get_by_text("Draft restored")).to_be_visible()
    expect(again.page.get_by_label("Pun word")).to_be_visible()


@pytest.mark.slow
def test_a_draft_that_cannot_be_kept_is_tried_again_at_leisure(
    local_site: Site, tmp_path: Path
) -> None:
    """Each failure leaves one timer: else a server that is down would be called ever more often."""
    project = open_project(local_site, tmp_path, "pun-form")
    local_site.hire(project, ("annotator",), "ann")
    ann = local_site.user("ann", width=1000)  # a window that no other test takes: its clock stands
    ann.page.clock.install()
    calls: list[str] = []

    def fail(route: Route) -> None:
        calls.append(route.request.url)
        route.fulfill(status=500)

    ann.page.route("**/draft", fail)
    ann.next(project)
    ann.write("half a sentence")
    for _ in range(20):
        ann.page.clock.run_for(1000)
        ann.page.wait_for_timeout(20)
    expect(ann.page.get_by_text("Draft not saved")).to_be_visible()
    assert 3 <= len(calls) <= 5
    ann.page.unroute_all()
    ann.window.errors.clear()  # the browser notes every 500 on its console


@pytest.mark.slow
def test_two_tabs_on_one_item_lose_nothing(local_site: Site, tmp_path: Path) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote")
    (first,) = local_site.hire(project, ("annotator",), "ann")
    second = local_site.user("ann")
    first.next(project)
    second.next(project)
    first.press("n")
    first.save()
    second.press("y", "2", "w")
    second.save()
    expect(second.page.get_by_role("heading", name="Two versions")).to_be_visible()
    expect(second.page.locator("table")).to_contain_text("Not harmful")
    expect(second.page.locator("table")).to_contain_text("General offence, no target")
    assert second.chosen() == ["yes", "offence", "text"]
    second.save()
    history = local_site.service.lead.items(local_site.lead, project, limit=1, offset=0)[0].history
    assert [step.values["harmful"] for step in history] == ["no", "yes"]
    second.window.errors.clear()  # the browser notes the answer 409 on its console


@pytest.mark.slow
def test_keys_answer_undo_skip_and_go_back(local_site: Site, tmp_path: Path) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote", 4)
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    assert "Item 1" in ann.next(project)
    # A choice can be changed, and what depended on it goes away again.
    ann.press("y", "1", "q", "a")
    assert ann.chosen() == ["yes", "targeted", "fusion", "gender"]
    ann.press("ArrowUp", "ArrowUp", "ArrowUp", "n")
    expect(ann.page.get_by_text("Which type of harm?")).to_be_hidden()
    ann.press("v")
    with ann.page.expect_navigation():
        ann.press("Enter")
    expect(ann.page.locator("h1")).to_contain_text("Item 2")
    # Undo from the next item brings the last one back.
    with ann.page.expect_navigation():
        ann.press("z")
    expect(ann.page.locator("h1")).to_contain_text("Item 1")
    ann.save()
    with ann.page.expect_navigation():
        ann.press("b")
    expect(ann.page.locator("h1")).to_contain_text("Item 1")
    ann.next(project)
    # Here "x" alone is an answer; with Shift it is the way out.
    ann.press("y", "1", "q", "x")
    assert ann.chosen()[-1] == "individual"
    with ann.page.expect_navigation():
        ann.press("Shift+X")
    expect(ann.page.get_by_text("will not be shown to you again")).to_be_visible()
    expect(ann.page.locator("h1")).to_contain_text("Item 3")


@pytest.mark.slow
def test_pictures_are_blurred_until_asked_and_grey_by_choice(
    local_site: Site, tmp_path: Path
) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote")
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    ann.next(project)

    def look() -> str:
        ann.page.wait_for_timeout(300)
        return str(ann.page.eval_on_selector(".frame img", "node => getComputedStyle(node).filter"))

    assert "blur" in look()
    ann.press("v")
    assert look() == "none"
    ann.press("v")
    assert "blur" in look()
    actor = local_site.service.accounts.log_in("ann", PASSWORD).actor
    local_site.service.accounts.set_preferences(actor, Preferences(blur=False, grey=True))
    ann.next(project)
    assert look() == "grayscale(1)"


@pytest.mark.slow
def test_nothing_is_saved_before_the_picture_was_shown(local_site: Site, tmp_path: Path) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote")
    (ann,) = local_site.hire(project, ("annotator",), "ann")
    ann.next(project)
    ann.press("n", "Control+Enter")
    expect(ann.page.locator("[data-state]")).to_contain_text("view the image first")
    expect(ann.page.locator("h1")).to_contain_text("Item 1")
    ann.press("v", "v")  # seen once is enough, though it is blurred again
    picture, button = (ann.page.locator(place) for place in (".frame img", ".veil > span"))
    ann.press("v")
    above, below = picture.bounding_box(), button.bounding_box()
    assert above is not None
    assert below is not None
    assert below["y"] >= above["y"] + above["height"]  # the button covers no caption
    ann.press("v")
    with ann.page.expect_navigation():
        ann.press("Control+Enter")
    expect(ann.page.locator("h1")).to_contain_text("Item 2")


@pytest.mark.slow
def test_answering_works_without_a_script(local_site: Site, tmp_path: Path) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote")
    local_site.hire(project, ("annotator",), "ann")
    plain = local_site.user("ann", script=False)
    plain.next(project)
    # Without a script all questions are there; those that do not apply are left out on saving.
    plain.page.get_by_role("radio", name="Not harmful").check()
    plain.page.get_by_role("radio", name="Sexual innuendo").check()
    plain.page.get_by_role("button", name="Save and continue").click()
    expect(plain.page.get_by_role("alert")).to_contain_text("view the image first")
    plain.window.errors.clear()  # the browser notes the answer 422 on its console
    plain.page.locator(".reveal").check(force=True)
    plain.page.get_by_role("button", name="Save and continue").click()
    expect(plain.page.locator("h1")).to_contain_text("Item 2")
    item = local_site.service.lead.items(local_site.lead, project, limit=1, offset=0)[0]
    assert item.history[-1].values == {"harmful": "no"}


PAGES = ("", "/welcome", "/next", "/last", "/progress", "/agreement", "/disagreements", "/items")
LEAD_PAGES = ("/members", "/data", "/audit", "/setup", "/guideline")


@pytest.mark.slow
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_page_fits_a_phone_and_has_names_for_everything(
    local_site: Site, tmp_path: Path, language: str
) -> None:
    queue = make_sample_queue(tmp_path / "sample", "label-by-vote", 3)
    service, lead = local_site.service, local_site.lead
    project = service.exchange.open_queue(lead, queue).id
    service.projects.set_roles(lead, project, lead.id, ["lead", "annotator", "adjudicator"])
    service.projects.consent(lead, project)
    service.accounts.invite(lead, project, ["annotator"], note="for somebody with a long name")
    chosen = "zh" if language == "zh" else "en"
    service.accounts.set_preferences(lead, Preferences(language=chosen))  # type: ignore[arg-type]
    phone = local_site.user("lead", width=360)
    paths = [f"/p/{project}{page}" for page in (*PAGES, *LEAD_PAGES)]
    for path in [*paths, f"/p/{project}/items/1", "/", "/settings", "/projects/new"]:
        page = phone.go(path)
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 360, f"{path} is {wide} wide"
        assert page.evaluate(NAMELESS) == [], path
        assert page.locator("h1").count() == 1, path
        if language == "zh":
            text = page.locator("main").inner_text()
            assert re.search("[\u4e00-\u9fff]", text), path


# Inputs without a label, buttons and links without a name, images without an alternative.
NAMELESS = """
() => [...document.querySelectorAll("input:not([type=hidden]), select, textarea, button, a, img")]
  .filter((node) => {
    if (node.matches("img")) return !node.hasAttribute("alt");
    if (node.closest("[aria-hidden=true]") || node.closest("template")) return false;
    if (node.matches("button, a")) {
      return !node.textContent.trim() && !node.getAttribute("aria-label");
    }
    return !node.labels.length && !node.getAttribute("aria-label");
  })
  .map((node) => node.outerHTML)
"""
CONTRAST = """
() => {
  const parse = (text) => (text.match(/[\\d.]+/g) || []).map(Number);
  const shine = ([r, g, b]) => [r, g, b].map((v) => {
    const s = v / 255;
    return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4;
  }).reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const ground = (node) => {
    for (let n = node; n; n = n.parentElement) {
      const colour = parse(getComputedStyle(n).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const node of document.querySelectorAll("body *")) {
    const own = [...node.childNodes].some((c) => c.nodeType === 3 && c.textContent.trim());
    if (!own || !node.offsetParent || node.closest(".unseen, .frame, [aria-hidden=true]")) continue;
    const [a, b] = [shine(parse(getComputedStyle(node).color)), shine(ground(node))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(`${ratio.toFixed(2)} ${node.outerHTML.slice(0, 80)}`);
  }
  return weak;
}
"""


VOTES: dict[str, dict[str, JsonValue]] = {
    "ann": {"harmful": "no"},
    "bob": {"harmful": "yes", "type": "offence", "modality": "text"},
}


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(local_site: Site, tmp_path: Path, scheme: str) -> None:
    project = open_project(local_site, tmp_path, "label-by-vote")
    service, lead = local_site.service, local_site.lead
    service.projects.set_roles(lead, project, lead.id, ["lead", "annotator"])
    service.projects.consent(lead, project)
    for name, said in VOTES.items():  # something to differ about
        actor = service.accounts.create(lead, name, PASSWORD)
        service.projects.add_member(lead, project, name, ["annotator"])
        service.projects.consent(actor, project)
        task = service.work.next(actor, project)
        assert task is not None
        service.work.submit(actor, task.assignment, said, task.version, 5.0)
    user = local_site.user("lead")
    user.page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    places = [f"/p/{project}{page}" for page in (*PAGES, *LEAD_PAGES)]
    for path in ("/", "/projects/new", "/settings", *places):
        page = user.go(path)
        if path.endswith("next"):
            user.press("y", "1")
        assert page.evaluate(CONTRAST) == [], path
