"""Every message on the page about troubleshooting is printed by the command that provokes it."""

from __future__ import annotations

import json
import re
import socket
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from PIL import Image

from memantics.core.samples import IMAGES
from tests.background import serve_in_background
from tests.commands import Ran, Shell
from tests.core_install import block_extras
from tests.faults import Fault, FaultServer
from tests.kinder import PLANNER
from tests.places import ROOT

pytestmark = pytest.mark.slow

PAGE = ROOT / "docs" / "how-to" / "troubleshooting.md"
TASK = ("run", "mquest/qa", "--model", "openai/NAME", "--limit", "2")
Provoke = Callable[[Shell], Ran]


def read_messages() -> dict[str, list[str]]:
    """Read the messages of the page, by the heading above them."""
    sections = PAGE.read_text(encoding="utf-8").split("\n## ")[1:]
    found = {
        section.partition("\n")[0]: re.findall(r"```text\n(.*?)```", section, flags=re.DOTALL)
        for section in sections
    }
    return {heading: messages for heading, messages in found.items() if messages}


def run_task(shell: Shell, url: str, *more: str) -> Ran:
    return shell.run(*TASK, *(("--base-url", url) if url else ()), *more)


def with_fault(fault: Fault) -> Provoke:
    """A run against a server that always fails in one way."""

    def provoke(shell: Shell) -> Ran:
        with serve_in_background(FaultServer(always=fault)) as server:
            return run_task(shell, server.url)

    return provoke


def without_extras(shell: Shell) -> Ran:
    blocked = block_extras(shell.folder / "blocked")
    return shell.apart.run("analyze", IMAGES / "en-005.png", **blocked)


def with_untrusted_certificate(shell: Shell) -> Ran:
    key, certificate = shell.folder / "key.pem", shell.folder / "certificate.pem"
    create = ("openssl", "req", "-x509", "-newkey", "rsa:2048", "-days", "2", "-nodes")
    subprocess.run(
        [*create, "-subj", "/CN=localhost", "-keyout", key, "-out", certificate],
        check=True,
        capture_output=True,
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server = HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        return run_task(shell, f"https://localhost:{server.server_port}/v1")
    finally:
        server.shutdown()
        server.server_close()
        thread.join(60)


def with_second_process(shell: Shell) -> Ran:
    """Start the same command twice; the first one still waits for its server."""
    with serve_in_background(FaultServer(seconds=4)) as server:
        command = [sys.executable, "-m", "memantics", *TASK, "--base-url", server.url]
        first = subprocess.Popen(
            command,
            cwd=shell.folder,
            env=shell.environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            while not server.total and first.poll() is None:
                time.sleep(0.05)
            return run_task(shell, server.url)
        finally:
            first.kill()
            first.wait(60)


def with_columns(shell: Shell) -> Ran:
    (shell.folder / "table.csv").write_text("comment,category\nhello,1\n", encoding="utf-8")
    return shell.run("screen", "table.csv", "--out", "screened")


def with_label_column(shell: Shell) -> Ran:
    (shell.folder / "table.csv").write_text("comment,mood\nhello,1\n", encoding="utf-8")
    return shell.run("detector", "train", "--data", "table.csv", "--out", "detector.zip")


def with_large_image(shell: Shell) -> Ran:
    Image.new("1", (20_000, 20_000)).save(shell.folder / "meme.png")
    return shell.run("analyze", "meme.png")


def with_broken_image(shell: Shell) -> Ran:
    (shell.folder / "meme.png").write_bytes(b"no image")
    return shell.run("analyze", "meme.png")


def with_broken_detector(shell: Shell) -> Ran:
    (shell.folder / "detector.zip").write_bytes(b"no detector")
    return shell.run("detector", "predict", "detector.zip", "hello")


def with_other_source(shell: Shell) -> Ran:
    for name in ("old", "new"):
        (shell.folder / f"{name}.csv").write_text("text\nhello\n", encoding="utf-8")
    shell.done("screen", "old.csv", "--out", "screened")
    return shell.run("screen", "new.csv", "--out", "screened")


def with_port_in_use(shell: Shell) -> Ran:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        return shell.run("serve", "--port", str(taken.getsockname()[1]))


def with_missing_glyph(shell: Shell) -> Ran:
    image = IMAGES / "en-012.png"
    shell.done("reappraise", image, *PLANNER, "--out", "kinder")
    plan = shell.folder / "kinder" / "en-012" / "plan.json"
    changed = json.loads(plan.read_text(encoding="utf-8"))
    changed["value"]["captions"]["1"] = "\U00012000\U00012001"
    plan.write_text(json.dumps(changed), encoding="utf-8")
    return shell.run("reappraise", image, *PLANNER, "--out", "kinder")


def words(*given: str) -> Provoke:
    return lambda shell: shell.run(*given)


PROVOKED: dict[str, Provoke] = {
    "An extra is not installed": without_extras,
    "No server URL is given": lambda shell: run_task(shell, ""),
    "The server cannot be reached": lambda shell: run_task(shell, "http://127.0.0.1:9/v1"),
    "HTTP 401: the API key is wrong": with_fault("401"),
    "HTTP 404: the model name or the URL is wrong": with_fault("404"),
    "HTTP 429: too many requests": with_fault("429"),
    "HTTP 400: the prompt is too long": with_fault("400"),
    "HTTP 413: the request is too large": with_fault("413"),
    "The TLS certificate is not trusted": with_untrusted_certificate,
    "No reply contains an answer": with_fault("babble"),
    "Another process writes the same run": with_second_process,
    "Unknown benchmark": words("run", "mquset", "--model", "baseline/longest"),
    "No release is registered": words(
        "run", "mquest", "--model", "baseline/longest", "--data", "release"
    ),
    "The folder is not a release": lambda shell: shell.run("data", "add", "mquest", shell.folder),
    "A table has no text or image column": with_columns,
    "A training table has other columns": with_label_column,
    "An image is too large": with_large_image,
    "An image cannot be read": with_broken_image,
    "A detector file is rejected": with_broken_detector,
    "The output folder has results of other data": with_other_source,
    "The port is in use": with_port_in_use,
    "The service would be open to other machines": words("serve", "--host", "0.0.0.0"),
    "No font has a character": with_missing_glyph,
    "An option does not exist": words("run", "mquest", "--modle", "baseline/longest"),
}


def fold(text: str) -> str:
    return " ".join(text.split())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    return Shell(tmp_path)


def test_every_message_has_a_command_that_provokes_it() -> None:
    assert list(read_messages()) == list(PROVOKED)
    assert len(PROVOKED) >= 20


@pytest.mark.parametrize("heading", PROVOKED)
def test_a_message_is_printed_as_the_page_shows_it(heading: str, shell: Shell) -> None:
    ran = PROVOKED[heading](shell)
    printed = fold(ran.out + " " + ran.err)
    for message in read_messages()[heading]:
        pattern = ".*".join(re.escape(part) for part in fold(message).split("…"))
        assert re.search(pattern, printed), f"page: {message}\nprinted: {printed}"
