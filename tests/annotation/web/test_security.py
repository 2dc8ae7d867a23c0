"""Attacks, each tried: forged forms, fixed sessions, hostile text, paths, uploads, guessing."""

from __future__ import annotations

import io
import struct
import zlib
from pathlib import Path
from urllib.parse import quote

import pytest
from PIL import Image

from memantics.annotation.records import Actor
from memantics.annotation.service import AnnotationService
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings, find_secret, make_form_token
from memantics.core.errors import InputError
from memantics.core.queue import QueueCard, QueueItem, Shown, write_queue
from memantics.web.server import is_local
from tests.annotation.team import draw_image
from tests.annotation.web.queues import make_queue
from tests.annotation.web.visitors import PASSWORD, SECRET, Office, Visitor, make_office

HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "{{ 7 * 7 }}",
    "</textarea><svg/onload=alert(1)>",
    "javascript:alert(1)",
    "'; DROP TABLE users; --",
)


@pytest.fixture
def project(office: Office, tmp_path: Path) -> int:
    queue = make_queue(tmp_path / "queue", "label-by-vote", 3)
    number = office.service.exchange.open_queue(office.lead, queue).id
    office.hire("ann", number, "annotator")
    return number


# Forged forms


def test_a_form_without_our_token_changes_nothing(office: Office, project: int) -> None:
    ann = office.visitor("ann")
    for token in ("", "0" * 64, make_form_token(SECRET, "another session")):
        answer = ann.client.post("/settings", data={"token": token, "language": "zh"})
        assert answer.status_code == 403
    assert office.service.accounts.preferences(_actor(office, "ann")).language == "en"


def test_a_form_of_another_site_is_refused_even_with_the_token(office: Office) -> None:
    lead = office.visitor("lead")
    for headers in (
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
    ):
        assert lead.post("/settings", {"language": "zh"}, **headers).status_code == 403
    own = {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}
    assert lead.post("/settings", {"language": "zh"}, **own).status_code == 303


def test_nobody_is_logged_in_by_a_forged_login_form(office: Office) -> None:
    visitor = office.visitor()
    answer = visitor.client.post("/login", data={"name": "lead", "password": PASSWORD})
    assert answer.status_code == 403
    assert "memantics" not in visitor.client.cookies


# Sessions


def test_a_session_planted_before_login_opens_nothing(office: Office) -> None:
    """Session fixation: what a stranger put into the browser is never taken over."""
    victim = office.visitor()
    victim.client.cookies.set("memantics", "planted-by-somebody", domain="127.0.0.1")
    assert victim.log_in("lead").status_code == 303
    kept = [cookie.value for cookie in victim.client.cookies.jar if cookie.name == "memantics"]
    assert kept[-1] != "planted-by-somebody"
    thief = office.visitor()
    thief.client.cookies.set("memantics", "planted-by-somebody", domain="127.0.0.1")
    assert thief.get("/settings").status_code == 303


def test_logging_in_again_makes_another_session_and_logging_out_ends_it(office: Office) -> None:
    lead = office.visitor("lead")
    first = lead.client.cookies["memantics"]
    assert lead.post("/logout").status_code == 303
    thief = office.visitor()
    thief.client.cookies.set("memantics", first, domain="127.0.0.1")
    assert thief.get("/settings").headers["location"].startswith("/login")
    assert lead.log_in("lead").status_code == 303
    assert lead.client.cookies["memantics"] != first


def test_a_new_password_ends_all_other_sessions(office: Office) -> None:
    here, there = office.visitor("lead"), office.visitor("lead")
    new = "a password that is new"
    wrong = {"old": "not the old one", "new": new, "again": new}
    assert here.post("/settings/password", wrong).status_code == 422
    right = {"old": PASSWORD, "new": new, "again": new}
    assert here.post("/settings/password", right).status_code == 303
    assert here.get("/settings").status_code == 200
    assert there.get("/settings").status_code == 303
    assert office.visitor().log_in("lead", new).status_code == 303


def test_cookies_are_kept_from_scripts_and_from_other_sites(office: Office) -> None:
    visitor = office.visitor()
    cookie = visitor.log_in("lead").headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "path=/" in cookie


def test_over_https_cookies_go_nowhere_else(office: Office) -> None:
    settings = WebSettings(SECRET, public_url="https://annotate.example.org")
    secure = Visitor(make_app(office.service, settings))
    secure.client.base_url = "https://annotate.example.org"
    answer = secure.log_in("lead")
    assert "__Host-memantics=" in answer.headers["set-cookie"]
    assert "secure" in answer.headers["set-cookie"].lower()
    assert "max-age" in answer.headers["strict-transport-security"]


def test_a_login_link_works_once_and_an_invitation_too(office: Office, project: int) -> None:
    link = office.service.accounts.login_link(office.lead)
    assert office.visitor().get(f"/enter/{link}").headers["location"] == "/"
    assert office.visitor().get(f"/enter/{link}").status_code == 410
    token = office.service.accounts.invite(office.lead, project, ["annotator"])
    form = {"name": "new", "password": PASSWORD, "again": PASSWORD}
    assert office.visitor().post(f"/join/{token}", form).status_code == 303
    again = office.visitor().post(f"/join/{token}", form | {"name": "newer"})
    assert again.status_code == 410


@pytest.mark.parametrize(
    "target",
    ["https://evil.example", "//evil.example", "/\\evil.example", "javascript:alert(1)", "//["],
)
def test_login_leads_only_to_pages_of_ours(office: Office, target: str) -> None:
    form = {"name": "lead", "password": PASSWORD, "next": target}
    assert office.visitor().get(f"/login?next={quote(target)}").status_code == 200
    assert office.visitor().post("/login", form).headers["location"] == "/"


# Guessing


def test_guessing_a_password_is_slowed_down(office: Office) -> None:
    visitor = office.visitor()
    answers = [visitor.log_in("lead", f"guess {n}").status_code for n in range(9)]
    assert answers == [401] * 8 + [429]
    # The right one does not help any more, and the page says when it will.
    late = visitor.log_in("lead")
    assert late.status_code == 429
    assert int(late.headers["retry-after"]) > 60
    assert "15 minutes" in late.text


def test_a_wrong_name_and_a_wrong_password_look_alike(office: Office) -> None:
    visitor = office.visitor()
    one, other = visitor.log_in("lead", "wrong password"), visitor.log_in("nobody", "wrong")
    assert one.status_code == other.status_code == 401
    assert one.text.replace("lead", "nobody") == other.text.replace("lead", "nobody")


# Hostile text


def test_hostile_text_is_shown_as_text_everywhere(office: Office, tmp_path: Path) -> None:
    folder = tmp_path / "hostile"
    draw_image(folder / "a.png", 5)
    items = [
        QueueItem(
            id=f"{n}-{text}",
            group=text,
            images=["a.png"],
            shown=[Shown(label=text, value=text), Shown(label="list", value=[text], kind="list")],
            values={"intents": [text]},
            hidden={"model": text},
        )
        for n, text in enumerate(HOSTILE)
    ]
    card = QueueCard(title=HOSTILE[0], workflow="collect-and-edit", warning=HOSTILE[1])
    write_queue(folder, card, items)
    project = office.service.exchange.open_queue(office.lead, folder).id
    for name in ("ann", "rob"):
        office.hire(name, project, "annotator")
    ann, lead = office.visitor("ann"), office.visitor("lead")
    for text in HOSTILE:
        place = ann.get(f"/p/{project}/next").headers["location"]
        page = ann.get(place).text
        _assert_tame(page)
        form = {
            "version": "0",
            "project": str(project),
            "k-intents": "ranked",
            "f-intents": [text, f"{text} again"],
            "k-background": "list",
            "f-background": [text],
        }
        assert ann.post(place, form).status_code == 303
        _assert_tame(ann.get(place).text)
    rob = office.visitor("rob")
    _assert_tame(rob.get(rob.get(f"/p/{project}/next").headers["location"]).text)
    item = office.service.lead.items(office.lead, project, limit=1, offset=0)[0].id
    pages = ("members", "progress", "agreement", "disagreements", "items", "audit", "data", "setup")
    for page in (*pages, f"items/{item}", "welcome", "last"):
        answer = lead.get(f"/p/{project}/{page}")
        assert answer.status_code == 200, page
        _assert_tame(answer.text)
    assert office.service.accounts.count() == 3


def _assert_tame(page: str) -> None:
    for piece in ("<script>alert", "<img src=x", "<svg/onload", 'href="javascript:', ">49<"):
        assert piece not in page


def test_hostile_names_and_queries_are_only_text(office: Office, project: int) -> None:
    visitor = office.visitor()
    for text in HOSTILE:
        answer = visitor.log_in(text, text)
        assert answer.status_code in (401, 429)
        _assert_tame(answer.text)
    ann = office.visitor("ann")
    for path in (
        f"/p/{project}/next?stage=' OR 1=1 --",
        f"/p/{project}?done=<script>alert(1)</script>",
        "/media/' OR '1'='1",
        "/login?next=<script>alert(1)</script>",
    ):
        answer = ann.get(path)
        assert answer.status_code in (200, 303, 403, 404, 422), path
        _assert_tame(answer.text)


def test_pages_allow_no_script_but_ours(office: Office) -> None:
    for answer in (office.visitor().get("/login"), office.visitor("lead").get("/")):
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["cache-control"] == "no-store"
        assert "<script>" not in answer.text
        assert " style=" not in answer.text
        assert " onclick=" not in answer.text


# Paths and images


@pytest.mark.parametrize(
    "path",
    [
        "/media/../annotate.db",
        "/media/..%2f..%2fannotate.db",
        "/media/%2e%2e/annotate.db",
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e%2fmessages.toml",
        "/media/" + "a" * 32,
        "/media/%00",
    ],
)
def test_no_path_leads_to_another_file(office: Office, project: int, path: str) -> None:
    answer = office.visitor("ann").get(path)
    assert answer.status_code in (403, 404)
    assert b"SQLite" not in answer.content
    assert b"import" not in answer.content


def test_images_are_served_as_images_and_to_members_only(office: Office, project: int) -> None:
    ann = office.visitor("ann")
    task = office.service.work.next(_actor(office, "ann"), project)
    assert task is not None
    answer = ann.get(f"/media/{task.images[0]}")
    assert answer.headers["content-type"] == "image/png"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"].startswith("private")
    assert answer.content.startswith(b"\x89PNG")
    assert office.visitor().get(f"/media/{task.images[0]}").status_code == 401


def _bomb(side: int) -> bytes:
    """A PNG of a few bytes that says it is huge."""
    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    rows = zlib.compress(b"\0" * 1000)
    signature = b"\x89PNG\r\n\x1a\n"
    return signature + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.mark.parametrize(
    ("name", "data", "problem"),
    [
        ("page.png", b"<html><script>alert(1)</script></html>", "format"),
        ("vector.svg", b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>", "format"),
        ("bomb.png", _bomb(60_000), "too many pixels"),
        ("cut.png", b"\x89PNG\r\n\x1a\n" + b"\0" * 40, "image"),
    ],
)
def test_hostile_uploads_are_named_and_not_kept(
    office: Office, project: int, name: str, data: bytes, problem: str
) -> None:
    lead = office.visitor("lead")
    before = _count(office.service, project, office)
    answer = lead.post(f"/p/{project}/media", files={"file": (f"../../{name}", data)})
    assert answer.status_code == 422
    assert problem in answer.text
    assert _count(office.service, project, office) == before


def test_an_upload_of_more_than_the_limit_is_cut_off(office: Office, project: int) -> None:
    lead = office.visitor("lead")
    form = {"token": lead.token()}
    big = lead.client.post(
        f"/p/{project}/media", data=form, files={"file": ("a.png", b"\0" * (65 * 1024 * 1024))}
    )
    assert big.status_code == 413
    long = lead.client.post("/settings", data=form | {"language": "z" * 2_000_000})
    assert long.status_code == 413


# Form, field, its longest text, what the form needs beside, and the status of what is not refused.
FIELDS = [
    ("/projects/new", "title", 200, {"workflow": "pun-form"}, 303),
    ("/projects/new", "own", 60_000, {"title": "t"}, 422),
    ("/p/{project}/invite", "note", 200, {"role": "lead"}, 200),
    ("/p/{project}/members", "name", 200, {"role": "lead"}, 404),
    ("/p/{project}/setup", "contact", 500, {"prelabels": "shown"}, 303),
    ("/p/{project}/setup", "warning", 2000, {"prelabels": "shown"}, 303),
    ("/settings/language", "back", 2000, {"language": "en"}, 303),
    ("/settings/password", "old", 1000, {"new": PASSWORD, "again": PASSWORD}, 422),
]


@pytest.mark.parametrize(("path", "name", "most", "more", "status"), FIELDS)
def test_a_field_that_is_too_long_is_refused_not_cut(
    office: Office, project: int, path: str, name: str, most: int, more: dict[str, str], status: int
) -> None:
    lead = office.visitor("lead")
    path = path.format(project=project)
    fine = lead.post(path, {**more, name: "x" * most})
    assert (fine.status_code, "the limit is" in fine.text) == (status, False)
    long = lead.post(path, {**more, name: "x" * (most + 1)})
    assert long.status_code == 422
    assert f"{name}: {most + 1:,} characters; the limit is {most:,}" in long.text
    said = lead.post(path, {**more, name: "x" * (most + 1)}, accept="application/json").json()
    assert said["error"].startswith(f"{name}: {most + 1:,} characters")


def test_questions_and_logins_that_are_too_long_are_refused(office: Office, project: int) -> None:
    ann = office.visitor("ann")
    for length, status in ((2000, 403), (2001, 422)):
        assert ann.get(f"/p/{project}/next?stage={'x' * length}").status_code == status
    # What a page says about itself is looked up, not shown.
    assert ann.get(f"/?done={'x' * 3000}").status_code == 200
    visitor = office.visitor()
    assert visitor.get(f"/login?lang={'x' * 3000}").status_code == 200
    assert visitor.log_in("ann", "x" * 1000).status_code == 401
    assert visitor.log_in("ann", "x" * 1001).status_code == 422
    assert visitor.log_in("a" * 201).status_code == 422


def test_forms_with_too_many_parts_are_refused(office: Office, project: int) -> None:
    ann = office.visitor("ann")
    work = ann.get(f"/p/{project}/next").headers["location"].partition("?")[0]
    for count, said in (("500", False), ("501", True), ("9" * 5000, True)):
        answer = ann.post(work, {"k-harmful": f"choice:{count}", "version": "0"})
        assert answer.status_code == 422
        assert ("at most 500 parts" in answer.text) == said
    token = ann.token()
    for fields, status in ((1999, 303), (2000, 413)):
        many = "&".join(f"a{number}=1" for number in range(fields))
        head = {"content-type": "application/x-www-form-urlencoded"}
        body = f"token={token}&{many}&language=en"[: None if status == 413 else -12]
        answer = ann.client.post("/settings/language", content=body, headers=head)
        assert answer.status_code == status
    assert answer.text == "a form has at most 2,000 fields"


def test_a_form_names_no_charset_but_utf_8(office: Office, project: int) -> None:
    """Any codec of Python was looked up, and some of them take quadratic time."""
    lead = office.visitor("lead")
    for name, status in (("punycode", 415), ("idna", 415), ("undefined", 415), ("utf-8", 422)):
        request = lead.client.build_request(
            "POST",
            f"/p/{project}/media",
            data={"token": lead.token()},
            files={"file": ("a.png", b"none")},
        )
        request.headers["content-type"] += f"; charset={name}"
        answer = lead.client.send(request)
        assert answer.status_code == status, name
        assert (answer.text == "forms must be UTF-8; other charsets are not supported") == (
            status == 415
        )


def test_a_body_that_hides_its_length_is_cut_off_too(office: Office) -> None:
    visitor = office.visitor("lead")

    def pieces() -> object:
        for _ in range(40):
            yield b"a=" + b"b" * 50_000 + b"&"

    headers = {"content-type": "application/x-www-form-urlencoded"}
    answer = visitor.client.post("/settings", content=pieces(), headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 413


@pytest.mark.parametrize("what", ["import", "media"])
def test_files_of_others_than_leads_are_not_read(office: Office, project: int, what: str) -> None:
    office.hire("worker", project, "annotator")
    worker, read = office.visitor("worker"), []

    def pieces() -> object:
        for number in range(40):
            read.append(number)
            yield b"-" * 50_000

    headers = {"content-type": "multipart/form-data; boundary=x"}
    place = f"/p/{project}/{what}"
    answer = worker.client.post(place, content=pieces(), headers=headers)  # type: ignore[arg-type]
    assert answer.status_code == 403
    assert not read


def test_good_uploads_among_bad_ones_become_items(office: Office, project: int) -> None:
    picture = io.BytesIO()
    Image.new("RGB", (30, 20), "teal").save(picture, "JPEG")
    lead = office.visitor("lead")
    before = _count(office.service, project, office)
    answer = lead.post(
        f"/p/{project}/media",
        files=[
            ("file", ("good.jpg", picture.getvalue(), "text/html")),
            ("file", ("bad.png", b"nothing", "image/png")),
        ],
    )
    assert answer.status_code == 200
    assert "1 images were added as items" in answer.text
    assert "bad.png" in answer.text
    assert _count(office.service, project, office) == before + 1


@pytest.mark.parametrize("path", ["/p/{}", "/work/{}", "/p/1/items/{}", "/p/1?from={}"])
def test_a_number_of_thousands_of_digits_names_nothing(office: Office, path: str) -> None:
    """Python converts at most 4,300 digits: anybody got status 500, without a session."""
    for visitor in (office.visitor(), office.visitor("lead")):
        assert visitor.get(path.format("9" * 5000)).status_code in (303, 403, 404)


def test_a_workflow_of_ones_own_is_never_a_file_of_the_server(
    office: Office, tmp_path: Path
) -> None:
    """A path of one line was opened, and the message told the keys of that file."""
    secret = tmp_path / "tokens.toml"
    secret.write_text('[shop]\nsha256 = "0"\n')
    lead = office.visitor("lead")
    for path in (secret, tmp_path / "missing.toml"):
        answer = lead.post("/projects/new", {"title": "A", "own": str(path)})
        assert answer.status_code == 422
        assert "shop" not in answer.text
        assert "No such file" not in answer.text


@pytest.mark.parametrize("number", [2**31, 2**63, 10**30])
def test_numbers_beyond_all_counting_name_nothing(
    service: AnnotationService, tmp_path: Path, number: int
) -> None:
    """On both databases: neither counts that far, and each complains in its own way."""
    office = make_office(service)
    queue = make_queue(tmp_path / "queue", "label-by-vote", 1)
    project = service.exchange.open_queue(office.lead, queue).id
    lead = office.visitor("lead")
    for path in (f"/p/{number}", f"/work/{number}", f"/p/{project}/items/{number}"):
        assert lead.get(path).status_code == 403, path
    for path in (f"audit?before={number}", f"items?from={number}", f"disagreements?from={number}"):
        assert lead.get(f"/p/{project}/{path}").status_code == 200, path
    form = {"role": "lead", "daily": str(number), "weekly": str(number)}
    user = office.lead.id
    assert lead.post(f"/p/{project}/members/{user}", form).status_code == 303


def test_odd_characters_are_text_or_nothing(service: AnnotationService, tmp_path: Path) -> None:
    office = make_office(service)
    odd = "a\0b\ud83d\u202e\x1b[31m"
    text = odd.encode("utf-8", "replace").decode()
    visitor = office.visitor()
    assert visitor.log_in(text, text).status_code == 401
    lead = office.visitor("lead")
    made = lead.post("/projects/new", {"title": text, "workflow": "pun-form"})
    assert made.status_code == 303
    project = int(made.headers["location"].split("/")[2])
    assert lead.post(f"/p/{project}/invite", {"role": "lead", "note": text}).status_code == 200
    answer = lead.post(f"/p/{project}/setup", {"prelabels": "shown", "warning": text})
    assert answer.status_code == 303
    assert lead.get("/media/%00").status_code in (403, 404)
    assert lead.get(f"/p/{project}/next?stage=%00").status_code in (303, 403)
    form = {"role": "annotator", "name": text}
    assert lead.post(f"/p/{project}/members", form).status_code in (403, 404, 422)
    picture = io.BytesIO()
    Image.new("RGB", (30, 20), "teal").save(picture, "PNG")
    file = {"file": ("a%00\u202e.png", picture.getvalue())}
    assert lead.post(f"/p/{project}/media", files=file).status_code == 200


def test_behind_a_proxy_forms_of_the_public_address_are_ours(office: Office) -> None:
    settings = WebSettings(SECRET, public_url="http://annotate.example.org")
    visitor = Visitor(make_app(office.service, settings))
    own = {"origin": "http://annotate.example.org"}
    form = {"name": "lead", "password": PASSWORD}
    assert visitor.post("/login", form, **own).status_code == 303
    other = {"origin": "http://evil.example.org"}
    assert visitor.post("/settings", {"language": "zh"}, **other).status_code == 403


# Addresses


def test_another_name_for_this_machine_is_not_served(office: Office) -> None:
    """A site that points its own name at 127.0.0.1 must not read what is served there."""
    visitor = office.visitor("lead")
    assert visitor.get("/settings", host="evil.example").status_code == 421
    assert visitor.get("/settings", host="localhost:8765").status_code == 200


def test_the_app_does_not_open_to_the_world_without_a_secret(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="MEMANTICS_SECRET"):
        find_secret(True, tmp_path / "secret", {})
    assert not (tmp_path / "secret").exists()
    with pytest.raises(InputError, match="16 or more"):
        find_secret(True, tmp_path / "secret", {"MEMANTICS_SECRET": "short"})
    given = {"MEMANTICS_SECRET": "long enough to be one"}
    assert find_secret(True, tmp_path / "secret", given) == b"long enough to be one"
    for host in ("0.0.0.0", "::", "192.0.2.7", "annotate.example.org"):
        assert not is_local(host)


def test_the_secret_of_this_machine_is_kept_for_its_owner_only(tmp_path: Path) -> None:
    first = find_secret(False, tmp_path / "a" / "secret", {})
    assert find_secret(False, tmp_path / "a" / "secret", {}) == first
    assert (tmp_path / "a" / "secret").stat().st_mode & 0o077 == 0


def _actor(office: Office, name: str) -> Actor:
    return office.service.accounts.log_in(name, PASSWORD).actor


def _count(service: AnnotationService, project: int, office: Office) -> int:
    return service.lead.progress(office.lead, project).items
