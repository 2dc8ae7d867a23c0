"""Pages without a script: what people see, and what becomes of what they send."""

from __future__ import annotations

import html
import json
import logging
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from string import Formatter

import pytest
from sqlalchemy.engine import Connection

from memantics.annotation.web import pages
from memantics.annotation.web.exchange import EXPORTS
from memantics.annotation.web.pages import SITE
from memantics.core.errors import StoreError
from memantics.web.logs import JsonLines, note_failure
from memantics.web.site import LANGUAGES
from tests.annotation.web.queues import questions
from tests.annotation.web.steps import HARMLESS, open_project, take
from tests.annotation.web.visitors import PASSWORD, Office
from tests.places import ROOT

WEB = Path(pages.__file__).parent


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


def test_every_export_is_handed_out_as_a_file(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions)
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    answer = {"version": "0", "project": "1", "k-unclear": "flag", "f-unclear": "true"}
    assert ann.post(take(ann, project), answer).status_code == 303
    lead = office.visitor("lead")
    page = lead.get(f"/p/{project}/data").text
    offered = re.findall(r'href="(/p/\d+/export[^"]+)"', page)
    assert len(offered) == sum(map(len, EXPORTS.values()))
    for link in offered:
        made = lead.get(html.unescape(link))
        assert made.status_code == 200, link
        assert made.headers["content-disposition"].startswith("attachment")
        # One person judged each item: there is no agreement to list.
        assert len(made.content) > 50 or "what=agreement&amp;form=jsonl" in link, link


@pytest.mark.parametrize("form", ["json", "zip"])
def test_an_export_comes_back_through_the_import(office: Office, tmp_path: Path, form: str) -> None:
    project = open_project(office, tmp_path, "validate", shown=questions)
    lead = office.visitor("lead")
    tasks = lead.get(f"/p/{project}/export?what=labelstudio&form={form}").content
    other = office.service.projects.create(office.lead, "Copy", "validate").id
    done = lead.post(f"/p/{other}/import", files={"file": (f"tasks.{form}", tasks)})
    assert done.status_code == 200, done.text
    images = 3 if form == "zip" else 0
    assert f"Imported: 3 items, {images} images" in done.text
    assert ("is missing" in done.text) == (form == "json")
    broken = lead.post(f"/p/{other}/import", files={"file": ("tasks.json", tasks[:9])})
    assert broken.status_code == 422


def test_mistakes_about_people_are_said_on_their_page(office: Office, tmp_path: Path) -> None:
    project = open_project(office, tmp_path, "validate")
    lead = office.visitor("lead")
    members = f"/p/{project}/members"
    unknown = lead.post(members, {"name": "nobody", "role": "annotator"})
    assert (unknown.status_code, "Send an invitation instead" in unknown.text) == (404, True)
    office.hire("ann", 0)
    without = lead.post(members, {"name": "ann"})
    assert (without.status_code, "Choose at least one role" in without.text) == (422, True)
    alone = lead.post(f"{members}/{office.lead.id}", {"role": "annotator"})
    assert (alone.status_code, "at least one lead" in alone.text) == (422, True)
    assert len(office.service.projects.members(office.lead, project)) == 1


def test_a_lead_is_offered_only_what_they_can_decide(office: Office) -> None:
    project = office.service.projects.create(office.lead, "Vote", "label-by-vote").id
    ann = office.hire("ann", project, "annotator")
    lead = office.visitor("lead")
    page = lead.get(f"/p/{project}/members").text
    picker = page[page.index(f'id="training-{ann.id}"') :].partition("</select>")[0]
    states = re.findall(r'<option value="(\w+)"', picker)
    assert states == ["none", "running", "passed"]
    for state in states[1:]:
        form = {"role": "annotator", "training": state, "training_before": "none"}
        assert lead.post(f"/p/{project}/members/{ann.id}", form).status_code == 303
    assert office.service.projects.members(office.lead, project)[1].training == "passed"


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
    with caplog.at_level(logging.INFO, "memantics.web"):
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
    message = "a secret path /etc/passwd"

    def fail(*_: object) -> None:
        raise RuntimeError(message)

    monkeypatch.setattr(office.service.projects, "mine", fail)
    with caplog.at_level(logging.INFO, "memantics.web"):
        answer = visitor.get("/")
    assert answer.status_code == 500
    assert "secret" not in answer.text
    failed = next(record for record in caplog.records if record.message == "failed")
    line = json.loads(JsonLines().format(failed))
    # An error's message may hold a caption or a path: its kind and its place are enough.
    assert "RuntimeError" in line["error"]
    assert "test_pages.py" in json.dumps(line)
    assert "secret" not in json.dumps(line)
    assert line["request"] == answer.headers["x-request-id"]
    note_failure("done", ValueError("x"))


def test_a_database_that_does_not_answer_is_a_page_that_says_so(
    office: Office, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = open_project(office, tmp_path, "label-by-vote")
    office.hire("ann", project, "annotator")
    ann = office.visitor("ann")
    place, token = take(ann, project), ann.token()

    @contextmanager
    def busy() -> Iterator[Connection]:
        raise StoreError("the database is busy")
        yield

    monkeypatch.setattr(type(office.service.context.db), "write", lambda _: busy())
    answer = ann.client.post(place, data={**HARMLESS, "token": token})
    assert answer.status_code == 503
    assert "Nothing was saved" in answer.text


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
            placeholders = {
                code: {name for _, name, _, _ in Formatter().parse(text) if name}
                for code, text in texts.items()
            }
            assert placeholders["en"] == placeholders["zh"], f"{section}.{key}"


def test_templates_and_code_name_only_messages_that_exist() -> None:
    known = set(SITE.words("en").messages)
    named: set[str] = set()
    for path in [*WEB.glob("templates/*.html"), *WEB.glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        named |= set(re.findall(r"""\b(?:t|words)\(\s*["']([a-z_]+\.[a-z_]+)["']\s*[,)]""", text))
    assert named
    assert named <= known, named - known


# Names of measures, of a command and of languages: the same everywhere.
AS_THEY_ARE = {"Cohen κ", "Fleiss κ", "Krippendorff α", "Gwet AC1", "ICC", "English", "中文"}
AS_THEY_ARE |= {"memantics annotate QUEUE", "Memantics", "· Memantics", "https://…", " UTC"}
READ_OUT = r"""\s(?:alt|title|placeholder|aria-label|data-[a-z]+)=["']([^"']* [^"']*)["']"""
LETTERS = re.compile(r"[^\W\d_]{2,}")


def find_untranslated(template: str) -> list[str]:
    """Words that a template says by itself, in one language."""
    text = re.sub(r"{% block (width|body_attributes) %}.*?{% endblock %}", "", template)
    tokens = list(SITE.environment.lex(text))
    # A text with a blank inside an expression is a sentence; one word is a name of something.
    said = [part[1:-1] for _, kind, part in tokens if kind == "string" and " " in part.strip("' ")]
    said = [words for words in said if not re.search(r"[<>&]|^[a-z-]+=", words)]
    text = "".join(part if kind == "data" else "\0" for _, kind, part in tokens).replace("\0", "")
    said += re.findall(READ_OUT, text)
    text = re.sub(r"<(kbd|script)\b.*?</\1>", "", text, flags=re.DOTALL)
    said += [words.strip() for words in re.split(r"<[^>]*>", text)]
    said = [words for words in said if LETTERS.search(words) and words not in AS_THEY_ARE]
    return [
        words for words in said if not re.match(r"&amp;|[a-z-]+=", words)
    ]  # of an address, a tag


def test_every_word_of_a_template_comes_from_the_messages() -> None:
    wrong = '<p title="A long hint">{{ t("x.y") }} saved</p>{{ "not so" if z else "" }}'
    assert find_untranslated(wrong) == ["not so", "A long hint", "saved"]
    assert find_untranslated('<p lang="{{ x }}">{% if a %}{{ t("a.b") }}{% endif %}</p>') == []
    for folder in SITE.parts:
        for path in (folder / "templates").glob("*.html"):
            assert find_untranslated(path.read_text(encoding="utf-8")) == [], path.name


def test_labels_of_the_queues_that_we_make_are_in_the_messages() -> None:
    found: set[str] = set()
    for path in (ROOT / "src" / "memantics").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        found |= set(re.findall(r"""Shown\(\s*label="([^"{]+)\"""", text))
    assert len(found) > 20
    keys = {label: f"label.{label.lower().replace(' ', '_')}" for label in found - {"pair"}}
    known = SITE.words("zh").messages
    assert [label for label, key in keys.items() if key not in known] == []


def test_no_page_carries_style_or_script_of_its_own() -> None:
    """The policy would not run it, and nobody would notice why."""
    for path in WEB.glob("templates/*.html"):
        text = path.read_text(encoding="utf-8")
        assert not re.search(r"\sstyle=|\son[a-z]+=|<style|<script(?! src=)", text), path.name
        assert "|safe" not in text.replace(" ", ""), path.name
