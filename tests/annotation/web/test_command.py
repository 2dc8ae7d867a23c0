"""``memantics annotate`` as a user starts it, in another process."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import HTTPCookieProcessor, build_opener

import orjson
import pytest
from typer.testing import CliRunner

from memantics.annotation.commands import Storage, find_admin, open_annotations
from memantics.annotation.demo import COLLEAGUES, make_demo
from memantics.annotation.errors import LoginFailed
from memantics.cli.main import make_app
from memantics.core.errors import InputError
from memantics.core.queue import read_annotations
from memantics.web.logs import note, note_failure, start_logs
from tests.annotation.team import quick_hasher
from tests.annotation.web.queues import make_queue, questions
from tests.annotation.web.visitors import open_quick
from tests.commands import Shell


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Passwords take their time on purpose; here they need not. (Other processes are as always.)"""
    monkeypatch.setattr("memantics.annotation.accounts.PasswordHasher", quick_hasher)


LINK = re.compile(r"(http://127\.0\.0\.1:\d+)(/enter/\S+)")


@contextmanager
def started(
    shell: Shell, *arguments: str | Path
) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Start the app; its process, its address, and the link that it prints."""
    with (shell.folder / "log").open("w") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memantics.cli.main", "annotate", *map(str, arguments)],
            cwd=shell.folder,
            env=shell.environment | {"TMPDIR": str(shell.folder)},
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if found := LINK.search(line):
                yield process, found[1], found[2]
                break
        else:
            raise AssertionError((shell.folder / "log").read_text())
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(30)
        process.stdout.close()


@pytest.mark.slow
def test_a_newcomer_annotates_the_sample_pack_from_the_link_alone(shell: Shell) -> None:
    """Four steps, each named on the page before: link, agree, go on, answer."""
    with started(shell, "--demo", "--port", "0") as (process, address, link):
        browser = build_opener(HTTPCookieProcessor())
        page = browser.open(address + link).read().decode()
        assert "Before you begin" in page
        token = re.search(r'name="token" value="(\w+)"', page)
        project = re.search(r'href="/p/(\d+)"', page)
        assert token is not None
        assert project is not None
        form = {"token": token[1], "agree": "yes"}
        page = (
            browser.open(f"{address}/p/{project[1]}/welcome", urlencode(form).encode())
            .read()
            .decode()
        )
        following = re.search(r'href="(/p/\d+/next[^"]*)"', page)
        assert following is not None
        answered = browser.open(address + following[1])
        page = answered.read().decode()
        form = {"token": token[1], "version": "0", "project": project[1]}
        form |= {"k-harmful": "choice", "f-harmful": "no", "veiled": "1", "seen": "1"}
        place = answered.url.partition("?")[0]
        after = browser.open(place, urlencode(form).encode())
        assert "/work/" in after.url
        assert after.url.partition("?")[0] != place
        assert "Saved" in after.read().decode()
        for picture in re.findall(r'src="(/media/\w+)"', page):
            assert browser.open(address + picture).headers["content-type"] == "image/png"
        # An orderly end: told to stop, it stops, and the demonstration is gone.
        assert list(shell.folder.glob("memantics-demo-*"))
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not list(shell.folder.glob("memantics-demo-*"))
    lines = (shell.folder / "log").read_text().splitlines()
    events = [orjson.loads(line)["event"] for line in lines]
    # A warning about an old patch version of Python may come first.
    events = [event for event in events if event != "python"]
    assert events[0] == "started"
    assert "stopped" in events


@pytest.mark.parametrize(("terminal", "shown"), [(True, 1), (False, 2)])
def test_a_terminal_shows_only_what_went_wrong(
    terminal: bool, shown: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line for each request would push the link off the screen."""
    out = StringIO()
    monkeypatch.setattr(out, "isatty", lambda: terminal)
    monkeypatch.setattr(sys, "stderr", out)
    start_logs()
    note("request")
    note_failure("broken", ValueError("x"))
    events = [orjson.loads(line)["event"] for line in out.getvalue().splitlines()]
    assert events == ["request", "broken"][-shown:]


@pytest.mark.slow
def test_a_queue_opens_and_a_second_start_finds_it_again(shell: Shell, tmp_path: Path) -> None:
    queue = make_queue(tmp_path / "queue", "validate", 2, shown=questions)
    with started(shell, queue, "--port", "0") as (process, address, link):
        page = build_opener(HTTPCookieProcessor()).open(address + link).read().decode()
        assert "Before you begin" in page
        process.send_signal(signal.SIGINT)
        assert process.wait(30) == 0
    with started(shell, "--port", "0") as (_, address, link):
        page = build_opener(HTTPCookieProcessor()).open(address + link).read().decode()
        assert "My projects" in page
        assert "/p/1" in page


@pytest.mark.slow
def test_it_refuses_to_open_to_the_world_without_a_secret(shell: Shell) -> None:
    line = shell.apart.refused("annotate", "--host", "0.0.0.0", "--port", "0")
    assert "MEMANTICS_SECRET" in line
    assert not (shell.folder / "home" / "annotate").exists()


def test_the_same_queue_given_twice_is_one_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_queue(tmp_path / "queue", "validate", 2, shown=questions)
    folder = ["annotate", "import", "queue/images", "--workflow", "pun-form", "--db", "a.db"]
    for arguments in (["annotate", "import", "queue", "--db", "a.db"], folder):
        first, second = (CliRunner().invoke(make_app(), arguments).output for _ in range(2))
        assert "2 new items" in first
        assert "0 new items" in second
        assert "already exists" in second
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media")
    lead = find_admin(service)
    counts = {p.title: service.lead.progress(lead, p.id).items for p in service.projects.mine(lead)}
    assert counts == {"validate": 2, "images": 2}
    service.close()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("missing-folder",), "does not exist"),
        (("--demo", "--db", "x.db"), "--demo"),
        (("--db", "mysql://x"), "database"),
        (("--public-url", "annotate.example.org"), "--public-url"),
        (("--public-url", "https://annotate.example.org"), "MEMANTICS_SECRET"),
        (("export", "7", "--out", "x.jsonl"), "the database has no projects"),
        (("restore", "missing.zip"), "missing.zip"),
        (("import", "tasks.json"), "--project"),
        (("import", "empty", "--project", "1"), "--project and --images"),
        (("import", "empty", "--workflow", "pun-form"), "contains no memes"),
    ],
)
def test_mistakes_are_one_line(
    arguments: tuple[str, ...], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "tasks.json").write_text("[]")
    (tmp_path / "empty").mkdir()
    done = CliRunner().invoke(
        make_app(), ["annotate", *arguments, "--port", "0"][: _length(arguments)]
    )
    assert isinstance(done.exception, InputError)
    assert words in str(done.exception)


def _length(arguments: tuple[str, ...]) -> int:
    """Only the first command takes a port."""
    return len(arguments) + (1 if arguments[0] in ("export", "import", "restore") else 3)


def test_import_export_backup_and_restore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    make_queue(tmp_path / "queue", "validate", 2, shown=questions)
    assert run(make_app(), ["annotate", "import", "queue", "--db", "a.db"]).exit_code == 0
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media")
    token = service.accounts.invite(find_admin(service), 1, ["annotator"])
    ann = service.accounts.accept(token, "ann", "a long password").actor
    service.projects.consent(ann, 1)
    task = service.work.next(ann, 1)
    assert task is not None
    service.work.submit(ann, task.assignment, {"unclear": True}, 0)
    service.close()
    export = ["annotate", "export", "1", "--db", "a.db", "--out", "out/annotations.jsonl"]
    assert run(make_app(), export).exit_code == 0
    annotations = list(read_annotations(tmp_path / "out" / "annotations.jsonl"))
    assert [(v.item, v.kept) for v in annotations] == [("meme-1", False)]
    made = run(make_app(), ["annotate", "backup", "all.zip", "--db", "a.db"])
    assert "1 answers, 2 images" in made.output
    assert run(make_app(), ["annotate", "restore", "all.zip", "--db", "b/b.db"]).exit_code == 0
    again = ["annotate", "export", "1", "--db", "b/b.db", "--out", "again.jsonl"]
    assert run(make_app(), again).exit_code == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (
        tmp_path / "out" / "annotations.jsonl"
    ).read_bytes()


def test_label_studio_files_go_out_and_come_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    def annotate(*arguments: str) -> str:
        done = CliRunner().invoke(make_app(), ["annotate", *arguments, "--db", "a.db"])
        assert done.exit_code == 0, done.exception
        return done.output

    make_queue(tmp_path / "queue", "validate", 2, shown=questions)
    annotate("import", "queue")
    annotate("export", "1", "--what", "labelstudio", "--format", "zip", "--out", "tasks.zip")
    assert "0 new items" in annotate("import", "tasks.zip", "--project", "1")
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media")
    lead = find_admin(service)
    copy = service.projects.create(lead, "copy", "validate").id
    assert "2 new items" in annotate("import", "tasks.zip", "--project", str(copy))
    assert [len(item.images) for item in service.lead.items(lead, copy)] == [1, 1]
    service.close()
    annotate("export", "1", "--what", "audit", "--out", "audit.jsonl")
    changes = [
        orjson.loads(line)["action"] for line in Path("audit.jsonl").read_bytes().splitlines()
    ]
    assert "item.import" in changes
    unknown = CliRunner().invoke(
        make_app(), ["annotate", "export", "7", "--out", "x", "--db", "a.db"]
    )
    assert "unknown project '7'; known: 1, 2" in str(unknown.exception)
    table = ["annotate", "export", "1", "--format", "csv", "--out", "x", "--db", "a.db"]
    assert "annotations cannot be exported as csv; choose jsonl" in str(
        CliRunner().invoke(make_app(), table).exception
    )


def test_passwords_are_replaced_and_accounts_closed_at_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media")
    find_admin(service)
    done = CliRunner().invoke(make_app(), ["annotate", "password", "Lead", "--db", "a.db"])
    found = re.search(r"new password of Lead: (\S+)", done.output)
    assert found is not None, done.output
    assert service.accounts.log_in("lead", found[1]).actor.name == "lead"
    service.accounts.create(find_admin(service), "ann", "a long password")
    closed = CliRunner().invoke(make_app(), ["annotate", "close", "ann", "--db", "a.db"])
    assert closed.exit_code == 0, closed.output
    with pytest.raises(LoginFailed):
        service.accounts.log_in("ann", "a long password")
    service.close()
    nobody = CliRunner().invoke(make_app(), ["annotate", "password", "nobody", "--db", "a.db"])
    assert "no account is named 'nobody'" in str(nobody.exception)


def test_a_folder_of_memes_needs_only_a_workflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    make_queue(tmp_path / "memes", "validate", 3)
    (tmp_path / "memes" / "queue.json").unlink()
    folder = str(tmp_path / "memes" / "images")
    done = CliRunner().invoke(
        make_app(), ["annotate", "import", folder, "--workflow", "pun-form", "--db", "a.db"]
    )
    assert done.exit_code == 0, done.output
    service = open_quick(str(tmp_path / "a.db"), tmp_path / "media")
    assert service.lead.progress(find_admin(service), 1).items == 3
    service.close()


@pytest.mark.slow
@pytest.mark.parametrize("trusted", [False, True])
def test_forwarded_addresses_are_believed_of_a_named_proxy_alone(
    shell: Shell, tmp_path: Path, trusted: bool
) -> None:
    named = ("--trusted-proxy", "127.0.0.1") if trusted else ()
    with started(shell, "--db", tmp_path / "a.db", "--port", "0", *named) as (_, address, _link):
        browser = build_opener(HTTPCookieProcessor())
        token = re.search(
            r'name="token" value="(\w+)"', browser.open(address + "/login").read().decode()
        )
        assert token is not None
        form = urlencode({"token": token[1], "name": "lead", "password": "wrong"}).encode()
        codes = []
        for number in range(10):
            browser.addheaders = [("X-Forwarded-For", f"203.0.113.{number}")]
            with pytest.raises(HTTPError) as caught:
                browser.open(f"{address}/login", form)
            codes.append(caught.value.code)
            caught.value.close()
    assert codes == ([401] * 10 if trusted else [401] * 8 + [429] * 2)


@pytest.mark.slow
def test_the_demonstration_opens_where_people_disagree(tmp_path: Path) -> None:
    with open_annotations(Storage(str(tmp_path / "demo.db"), tmp_path / "media")) as service:
        me, start = make_demo(service, tmp_path)
        project = int(start.removeprefix("/p/"))
        assert service.projects.get(me, project).workflow.name == "label-by-vote"
        disputed = service.lead.disagreements(me, project)
        assert len(disputed) >= 4
        service.projects.consent(me, project)
        tie = service.work.next(me, project)
        assert tie is not None
        assert tie.stage == "adjudicate"
        assert len(tie.annotations) == len(COLLEAGUES)
