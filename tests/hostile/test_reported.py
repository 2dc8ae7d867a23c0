"""The attacks as they were first reported, through commands alone.

They use nothing of the package but its command line and its images, so that they run on the
sources of any commit: ``PYTHONPATH=OTHER/src pytest --noconftest tests/hostile/test_reported.py``.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import socket
import sqlite3
import threading
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from email.message import Message
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from PIL import Image as Pillow

from memantics.core.samples import IMAGES
from tests import forks
from tests.forks import Ran
from tests.hostile import backups, detectors
from tests.hostile.images import multi_picture_jpeg, palette_png_without_palette, turned

TITLE = "\x1b]0;PWNED\x07"
QUESTIONS = ("run", "mquest/qa", "--limit", "2")
LIMIT = 8  # wrong passwords before an address must wait


def refusal(ran: Ran) -> str:
    """The one line in which a command refuses: no traceback, nothing that a terminal obeys."""
    lines = ran.err.strip().splitlines()
    assert len(lines) == 1, lines[-5:]
    assert lines[0].isprintable(), lines
    assert lines[0].startswith("error: "), lines
    assert ran.code == 2
    return lines[0]


@dataclass(frozen=True)
class Page:
    status: int
    text: str
    headers: Message


@dataclass(frozen=True)
class User:
    folder: Path

    @property
    def place(self) -> forks.Place:
        home = {"MEMANTICS_HOME": str(self.folder / "own"), "COLUMNS": "500"}
        return forks.Place(self.folder, {**os.environ, **home})

    def run(self, *words: str | Path) -> Ran:
        return forks.run(partial(forks.be_command, [str(word) for word in words]), self.place)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> User:
    """Somebody with a store of knowledge, who has read images before."""
    made = User(tmp_path_factory.mktemp("shared"))
    (made.folder / "own" / "ocr").mkdir(parents=True)
    assert made.run("kb", "import", "sample", "--store", "k").code == 0
    return made


@pytest.fixture
def user(tmp_path: Path, shared: User) -> User:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "ocr").symlink_to(shared.folder / "own" / "ocr")
    return User(tmp_path)


@pytest.fixture
def calls() -> Iterator[tuple[str, list[object]]]:
    """An address on this machine, and who called it."""
    came: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def wait() -> None:
            while True:
                try:
                    other, address = server.accept()
                except OSError:
                    return
                came.append(address)
                other.close()

        threading.Thread(target=wait, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/", came
        server.shutdown(socket.SHUT_RDWR)


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * { {}.SERVICE SILENT <URL> {?x ?b ?c} }",
        "PREFIX : <URL> SELECT * { SERVICE:x{?s ?p ?o} }",
        "SELECT * { VALUES ?x{<URL>} FILTER(1<2)SERVICE?x{?a?b?c}FILTER(3>2) }",
    ],
)
def test_a_query_calls_nobody(shared: User, calls: tuple[str, list[object]], query: str) -> None:
    url, came = calls
    ran = shared.run("kb", "query", query.replace("URL", url), "--store", "k")
    assert came == []
    assert "SERVICE" in refusal(ran)


def test_deep_nesting_is_refused(shared: User) -> None:
    query = "SELECT * " + "{" * 30_000 + "}" * 30_000
    assert "nest" in refusal(shared.run("kb", "query", query, "--store", "k"))


def read_meme(name: str) -> Pillow.Image:
    with Pillow.open(IMAGES / f"{name}.png") as meme:
        return meme.convert("RGB")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "data", "fine"),
    [
        ("palette.png", palette_png_without_palette(), False),
        ("several.jpg", multi_picture_jpeg(fill=True)[:900], False),
        ("several.jpg", multi_picture_jpeg(fill=True, image=read_meme("en-002")), True),
        (os.fsdecode(b"photo\xff.png"), b"no image", False),
    ],
    ids=("no palette", "half of several", "several", "not UTF-8"),
)
def test_an_image_ends_no_command(user: User, name: str, data: bytes, fine: bool) -> None:
    (user.folder / "memes").mkdir()
    (user.folder / "memes" / name).write_bytes(data)
    read_meme("en-001").save(user.folder / "memes" / "sound.png")
    ran = user.run("collect", "memes", "--out", "collected", "--json")
    assert "Traceback" not in ran.err
    assert json.loads(ran.out)["counts"]["kept"] == 1 + fine
    told = ran.out + ran.err
    assert all(char.isprintable() for char in told.replace("\n", ""))


@pytest.mark.slow
def test_a_picture_of_several_is_sent_to_a_model(user: User) -> None:
    (user.folder / "several.jpg").write_bytes(multi_picture_jpeg(fill=True))
    ran = ask(user, Server, "analyze", "several.jpg", "--json")
    assert ran.code == 0, ran.err[-300:]
    assert json.loads(ran.out)[0]["meme"] == "several"


@pytest.mark.slow
def test_a_turned_photograph_is_read_upright(user: User) -> None:
    stored = read_meme("en-001").transpose(Pillow.Transpose.ROTATE_90)
    (user.folder / "turned.jpg").write_bytes(turned("JPEG", 6, stored))
    assert "AWKWARD" in user.run("analyze", "turned.jpg", "--json").out


def test_a_file_name_sets_no_title(user: User) -> None:
    assert "PWNED" in refusal(user.run("report", TITLE))


def test_a_key_of_a_file_sets_no_title(user: User) -> None:
    row = {"task": "qa", "system": "m", "source": "s", "digits": 4, "feasible": None, TITLE: 1}
    (user.folder / "table.json").write_text(json.dumps([row | {"metrics": {"accuracy": 0.5}}]))
    assert "PWNED" in refusal(user.run("audit", "mer_bench", "--published", "table.json"))


class Server(BaseHTTPRequestHandler):
    """A model server that answers B, or refuses with a title for the terminal."""

    rude = False

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "finish_reason": "stop"}
        choice["message"] = {"role": "assistant", "content": "B"}
        body = json.dumps({"error": {"message": TITLE}} if self.rude else {"choices": [choice]})
        # As an answer that escapes nothing would hold it.
        data = body.replace("\\u001b", "\x1b").replace("\\u0007", "\x07").encode()
        self.send_response(400 if self.rude else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


class Rude(Server):
    rude = True


def ask(user: User, kind: type[Server], *words: str) -> Ran:
    with ThreadingHTTPServer(("127.0.0.1", 0), kind) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        ran = user.run(*words, "--model", "openai/m", "--base-url", url)
        server.shutdown()
    return ran


def test_a_server_sets_no_title(user: User) -> None:
    ran = ask(user, Rude, *QUESTIONS)
    assert "PWNED" in ran.out + ran.err
    assert not {"\x1b", "\x07"} & set(ran.out + ran.err)


def test_damaged_rows_of_the_cache_are_asked_again(user: User) -> None:
    asked = ask(user, Server, *QUESTIONS, "--out", "first", "--json")
    assert json.loads(asked.out)[0]["scores"]["counts"]["answered"] == 2, asked.err[-300:]
    (kept,) = (user.folder / "own").rglob("*.sqlite")
    with closing(sqlite3.connect(kept)) as rows, rows:
        damage = "UPDATE replies SET reply = ?"
        assert rows.execute(damage, (b'{"text": 1}',)).rowcount == 2
    rows.close()
    again = ask(user, Server, *QUESTIONS, "--out", "second", "--json")
    assert json.loads(again.out)[0]["scores"]["counts"]["answered"] == 2, again.err[-300:]


def test_a_backup_with_a_wrong_type_shows_no_password(user: User) -> None:
    case = {"table": "tables/users.jsonl", "row": 0, "column": "name", "value": {"a": 1}}
    (user.folder / "changed.zip").write_bytes(backups.build(case))
    ran = user.run("annotate", "restore", "changed.zip", "--db", "fresh.db")
    assert not any(hashed[30:] in ran.err for hashed in backups.password_hashes())
    assert "users" in refusal(ran)


@pytest.mark.parametrize(
    "change",
    [
        {"array": "harm_weights.npy", "edit": "nan", "place": 0},
        {"setting": "threshold", "value": float("nan")},
    ],
)
def test_a_detector_of_no_numbers_calls_nothing_harmless(
    user: User, change: dict[str, object]
) -> None:
    (user.folder / "changed.zip").write_bytes(detectors.build({"changes": [change]}))
    ran = user.run("detector", "predict", "changed.zip", "今天天气不错")
    assert "harmless" not in ran.out
    assert "changed.zip" in refusal(ran)


def read(log: Path) -> str:
    return log.read_text(encoding="utf-8") if log.exists() else ""


class Annotation:
    """The annotation app with one account, in a process of its own."""

    def __init__(self, user: User) -> None:
        words = ("annotate", "open", "--port", "0", "--db", "a.db", "--media", "media")
        ran = user.run("annotate", "restore", backups.SOUND, *words[4:])
        assert ran.code == 0, ran.err[-500:]
        log = user.folder / "log"
        place = replace(user.place, writes=str(log))
        self._process = forks.start(partial(forks.be_command, list(words)), place)
        while not (found := re.search(r"http://127\.0\.0\.1:(\d+)", read(log))):
            assert self._process.is_alive(), read(log)
            time.sleep(0.05)
        self._port = int(found[1])
        page = self._ask("GET", "/login", {})
        self._cookie = page.headers["Set-Cookie"].split(";")[0]
        (self._token,) = re.findall(r'name="token" value="(\w+)"', page.text)

    def _ask(self, method: str, path: str, headers: dict[str, str], body: str = "") -> Page:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        connection.request(method, path, body, headers)
        answer = connection.getresponse()
        page = Page(answer.status, answer.read().decode(), answer.headers)
        connection.close()
        return page

    def guess(self, number: int, *, forwarded: bool) -> int:
        form = {"name": "lead", "password": f"wrong {number}", "token": self._token, "next": "/"}
        headers = {"Cookie": self._cookie, "Content-Type": "application/x-www-form-urlencoded"}
        if forwarded:
            headers["X-Forwarded-For"] = f"203.0.113.{number}"
        return self._ask("POST", "/login", headers, urllib.parse.urlencode(form)).status

    def close(self) -> None:
        self._process.kill()
        self._process.join()


@pytest.fixture
def annotation(user: User) -> Iterator[Annotation]:
    made = Annotation(user)
    yield made
    made.close()


@pytest.mark.slow
def test_a_header_brings_no_further_guess(annotation: Annotation) -> None:
    ends = Counter(annotation.guess(number, forwarded=True) for number in range(40))
    assert ends == {401: LIMIT, 429: 40 - LIMIT}


@pytest.mark.slow
def test_guesses_at_once_are_counted_before_they_are_looked_at(annotation: Annotation) -> None:
    with ThreadPoolExecutor(24) as pool:
        ends = Counter(pool.map(partial(annotation.guess, forwarded=False), range(24)))
    assert ends == {401: LIMIT, 429: 24 - LIMIT}
