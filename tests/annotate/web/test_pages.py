"""Pages without a script: what people see, and what becomes of what they send."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from memantics.annotate.records import Actor, Preferences
from memantics.annotate.web import language
from memantics.annotate.web.language import LANGUAGES, read_catalogue
from memantics.annotate.web.logs import JsonLines, note_failure
from memantics.annotate.workflow import Settings
from tests.annotate.team import Clock
from tests.annotate.web.queues import make_queue, questions
from tests.annotate.web.visitors import PASSWORD, Office, Visitor, make_office, open_quick

WEB = Path(language.__file__).parent
HARMLESS = {"version": "0", "project": "1", "k-harmful": "choice", "f-harmful": "no"}


def open_project(office: Office, folder: Path, workflow: str, count: int = 3, **extra: Any) -> int:
    queue = make_queue(folder / "queue", workflow, count, **extra)
    return office.service.exchange.open_queue(office.lead, queue).id


def take(visitor: Visitor, project: int) -> str:
    """Go to the next item; the path of its page."""
    return str(visitor.get(f"/p/{project}/next").headers["location"]).partition("?")[0]


def actor(office: Office, name: str) -> Actor:
    return office.service.accounts.log_in(name, PASSWORD).actor


# Coming in


def test_an_invitation_leads_to_the_warning_and_then_to_work(
    office: Office, tmp_path: Path
) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions, warning="Mind the cats")
    lead = office.visitor("lead")
    page = lead.post(f"/p/{project}/invite", {"role": "annotator", "note": "hello"}).text
    link = re.search(r'value="http://127\.0\.0\.1:8765(/join/[\w-]+)"', page)
    assert link is not None
    ann = office.visitor()
    assert "hello" in ann.get(link[1]).text
    form = {"name": "ann", "password": PASSWORD, "again": PASSWORD}
    assert ann.post(link[1], form | {"again": "another one"}).status_code == 422
    assert ann.post(link[1], form | {"password": "short", "again": "short"}).status_code == 422
    assert ann.post(link[1], form).headers["location"] == f"/p/{project}"
    assert ann.get(f"/p/{project}").headers["location"] == f"/p/{project}/welcome"
    assert ann.get(f"/p/{project}/next").headers["location"] == f"/p/{project}/welcome"
    assert "Mind the cats" in ann.get(f"/p/{project}/welcome").text
    assert "agree" in ann.post(f"/p/{project}/welcome").headers["location"]
    assert ann.post(f"/p/{project}/welcome", {"agree": "yes"}).status_code == 303
    assert ann.get(take(ann, project)).status_code == 200


def test_someone_with_an_account_joins_as_themselves(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions)
    office.hire("ann", project)
    token = office.service.accounts.invite(office.lead, project, ["reviewer"])
    ann = office.visitor("ann")
    assert "logged in as ann" in ann.get(f"/join/{token}").text
    assert ann.post(f"/join/{token}").headers["location"] == f"/p/{project}"


# The item


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
    assert "Please answer this." in answer.text
    assert re.search(r'value="yes" data-key="y" checked', ann.get(place).text)
    office.service.accounts.set_preferences(actor(office, "ann"), Preferences(language="zh"))
    again = ann.post(place, HARMLESS | {"f-harmful": "yes", "k-type": "choice"})
    assert "请回答此项" in again.text


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
    for text in ("Not harmful", "General offence, no target", "Save mine", "Keep what is saved"):
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
    assert "Somebody else has this item now" in late.text
    assert "I don&#39;t understand this meme" in late.text
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
    assert "Your draft is back" in page
    assert "Skip, this distresses me" in page
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
    assert "Nothing to do for you" in nothing.text


def test_an_item_given_back_comes_to_somebody_else(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate", 1, shown=questions)
    office.hire("ann", project, "annotator")
    office.hire("rob", project, "annotator")
    ann, rob = office.visitor("ann"), office.visitor("rob")
    place = take(ann, project)
    assert "Nothing to do" in rob.get(f"/p/{project}/next").text
    assert ann.post(f"{place}/release").status_code == 303
    assert take(rob, project) == place
    assert ann.get(place).status_code == 403


def test_the_limit_of_a_day_is_kept_by_the_server(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.service.projects.set_settings(office.lead, project, Settings(daily_limit=1))
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
    assert "Look away" not in ann.get(place).text
    pauses = office.app.state.desk.pauses
    since, last = pauses._spans[person.id]
    pauses._spans[person.id] = (since - 41 * 60, last)
    assert "Look away" in ann.get(place).text
    assert "Look away" not in ann.get(place).text


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


def test_training_says_what_was_expected(office: Office, tmp_path: Path) -> None:
    gold = {"harmful": "no"}
    project = open_project(office, tmp_path, "label-by-vote", 11, gold=gold)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place = take(ann, project)
    assert "Training, round 1" in ann.get(place).text
    page = ann.post(place, HARMLESS)
    assert page.status_code == 200
    assert "In this round so far: 100 % right" in page.text
    assert page.text.count("tag good") >= 1


# For the lead


def test_a_project_from_a_form_and_from_a_file_of_ones_own(office: Office) -> None:
    lead = office.visitor("lead")
    assert lead.post("/projects/new", {"title": "", "workflow": "validate"}).status_code == 422
    assert lead.post("/projects/new", {"title": "A", "workflow": "nothing"}).status_code == 422
    made = lead.post("/projects/new", {"title": "A", "workflow": "validate"})
    assert made.headers["location"].endswith("/data?done=created")
    bad = lead.post("/projects/new", {"title": "B", "own": 'name = "own"\nfields = 3'})
    assert bad.status_code == 422
    assert "key" in bad.text


def test_members_change_roles_and_limits(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    ann = office.hire("ann", project, "annotator")
    lead = office.visitor("lead")
    form = {"role": ["annotator", "adjudicator"], "daily": "7", "weekly": ""}
    assert lead.post(f"/p/{project}/members/{ann.id}", form).status_code == 303
    member = next(
        m for m in office.service.projects.members(office.lead, project) if m.user == ann.id
    )
    assert set(member.roles) == {"annotator", "adjudicator"}
    assert (member.daily_limit, member.weekly_limit) == (7, None)
    visitor = office.visitor("ann")
    assert visitor.get(f"/p/{project}").status_code == 200
    assert lead.post(f"/p/{project}/members/{ann.id}").status_code == 303
    assert visitor.get(f"/p/{project}").status_code == 403


@pytest.mark.parametrize(
    ("what", "form"),
    [
        ("raw", "jsonl"),
        ("raw", "csv"),
        ("raw", "parquet"),
        ("resolved", "jsonl"),
        ("resolved", "csv"),
        ("resolved", "parquet"),
        ("verdicts", "jsonl"),
        ("labelstudio", "json"),
    ],
)
def test_every_export_is_handed_out_as_a_file(
    office: Office, tmp_path: Path, what: str, form: str
) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    answer = {"version": "0", "project": "1", "k-unclear": "flag", "f-unclear": "true"}
    assert ann.post(take(ann, project), answer).status_code == 303
    made = office.visitor("lead").get(f"/p/{project}/export?what={what}&form={form}")
    assert made.status_code == 200
    assert made.headers["content-disposition"].startswith("attachment")
    assert len(made.content) > 50


def test_an_export_comes_back_through_the_import(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions)
    lead = office.visitor("lead")
    tasks = lead.get(f"/p/{project}/export?what=labelstudio&form=json").content
    other = office.service.projects.create(office.lead, "Copy", "validate").id
    done = lead.post(f"/p/{other}/import", files={"file": ("tasks.json", tasks)})
    assert done.status_code == 200, done.text
    assert "Imported: 3 items" in done.text
    broken = lead.post(f"/p/{other}/import", files={"file": ("tasks.json", b"{")})
    assert broken.status_code == 422


# Around the pages


def test_health_tells_about_the_database(office: Office) -> None:
    answer = office.visitor().get("/health")
    assert answer.status_code == 200
    assert answer.json()["ok"] is True
    office.service.close()
    answer = office.visitor().get("/health")
    assert answer.status_code in (200, 503)


def test_logs_are_json_lines_and_hold_no_secret(
    office: Office, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "memantics.annotate"):
        visitor = office.visitor("lead")
        link = office.service.accounts.login_link(office.lead)
        office.visitor().get(f"/enter/{link}")
        visitor.get("/settings")
    lines = [JsonLines().format(record) for record in caplog.records]
    parsed = [json.loads(line) for line in lines]
    assert {"request", "login"} <= {line["event"] for line in parsed}
    request = next(line for line in parsed if line["event"] == "request")
    assert {"at", "level", "request", "method", "path", "status", "ms"} <= set(request)
    whole = "\n".join(lines)
    for secret in (PASSWORD, link, visitor.client.cookies["memantics"]):
        assert secret not in whole


def test_a_failure_is_logged_with_its_place_and_shown_without_it(
    office: Office, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    visitor = office.visitor("lead")

    def fail(*_: object) -> None:
        raise RuntimeError("a secret path /etc/passwd")

    monkeypatch.setattr(office.service.projects, "mine", fail)
    with caplog.at_level(logging.INFO, "memantics.annotate"):
        answer = visitor.get("/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    failed = next(record for record in caplog.records if record.message == "failed")
    line = json.loads(JsonLines().format(failed))
    assert "secret path" in line["error"]
    assert line["request"] == answer.headers["x-request-id"]
    note_failure("done", ValueError("x"))


def test_the_language_follows_the_browser_and_then_the_person(office: Office) -> None:
    visitor = office.visitor()
    assert "登录" in visitor.get("/login", **{"accept-language": "zh-CN,zh;q=0.9"}).text
    assert "登录" in visitor.get("/login?lang=zh").text
    assert "Log in" in visitor.get("/login", **{"accept-language": "fr"}).text
    lead = office.visitor("lead")
    assert (
        lead.post("/settings/language", {"language": "zh", "back": "/settings"}).status_code == 303
    )
    page = lead.get("/settings").text
    assert "界面语言" in page
    assert '<html lang="zh-CN">' in page


# The catalogue


def test_every_message_is_there_in_both_languages_with_the_same_holes() -> None:
    sections = tomllib.loads((WEB / "messages.toml").read_text(encoding="utf-8"))
    for section, entries in sections.items():
        for key, texts in entries.items():
            assert set(texts) == set(LANGUAGES), f"{section}.{key}"
            holes = {
                code: {name for _, name, _, _ in Formatter().parse(text) if name}
                for code, text in texts.items()
            }
            assert holes["en"] == holes["zh"], f"{section}.{key}"


def test_templates_and_code_name_only_messages_that_exist() -> None:
    known = set(read_catalogue("en").messages)
    named: set[str] = set()
    for path in [*WEB.glob("templates/*.html"), *WEB.glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"""\b(?:t|words)\(\s*["']([a-z_]+\.[a-z_]+)["']\s*[,)]""", text))
    assert named
    assert named <= known, named - known


def test_no_page_carries_style_or_script_of_its_own() -> None:
    """The policy would not run it, and nobody would notice why."""
    for path in WEB.glob("templates/*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?! src=)", text), path.name
        assert "|safe" not in text.replace(" ", ""), path.name
