"""Pages without a script: what people see, and what becomes of what they send."""

from __future__ import annotations

import json
import logging
import re
import tomllib
from pathlib import Path
from string import Formatter

import pytest

from memantics.annotate.web import language
from memantics.annotate.web.language import LANGUAGES, read_catalogue
from memantics.annotate.web.logs import JsonLines, note_failure
from tests.annotate.web.queues import questions
from tests.annotate.web.steps import open_project, take
from tests.annotate.web.visitors import PASSWORD, Office

WEB = Path(language.__file__).parent


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
        ("audit", "jsonl"),
        ("audit", "csv"),
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
