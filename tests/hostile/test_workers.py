"""Several workers of the service under attack: one that dies is replaced, senders have an end."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import httpx
import pytest

from tests.hostile.cases import SEED, count_cases
from tests.hostile.forms import body, generate

pytestmark = pytest.mark.slow
PATIENCE = 120.0


def list_children(process: int) -> list[int]:
    """The workers: children that serve (a helper of multiprocessing is one more)."""
    found = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [
        int(child)
        for child in found
        if b"spawn_main" in Path(f"/proc/{child}/cmdline").read_bytes()
    ]


def wait_for(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(httpx.HTTPError):
            if httpx.get(f"{address}/readyz", timeout=5).status_code == 200:
                return
        time.sleep(0.2)
    raise AssertionError("the service did not answer")


@pytest.fixture
def served(tmp_path: Path) -> Iterator[tuple[int, str]]:
    """The command with two workers: its process and its address."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["serve", "--port", str(port), "--workers", "2", "--state", str(tmp_path / "state")]
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "memantics.cli.main", *words],
            env=os.environ | {"MEMANTICS_HOME": str(tmp_path / "home")},
            stdout=log,
            stderr=log,
        )
    try:
        wait_for(f"http://127.0.0.1:{port}")
        yield process.pid, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        try:
            process.wait(90)
        finally:
            process.kill()


def test_workers_that_die_are_replaced_while_others_attack(served: tuple[int, str]) -> None:
    process, address = served
    # A form in another encoding is refused by its type, and a long one before it is read.
    tokens = {415: body(("token", b"x" * 1_000)), 413: body(("token", b"x" * 100_000))}
    answered = 0
    for number, kind in enumerate(generate(SEED, count_cases(20))):
        if number in (5, 12):
            victim = list_children(process)[0]
            os.kill(victim, signal.SIGKILL)
        expected = (413, 415)[number % 2]
        head = {"content-type": kind}
        try:
            answer = httpx.post(
                f"{address}/login", content=tokens[expected], headers=head, timeout=30
            )
            assert answer.status_code == expected
            answered += 1
        except httpx.HTTPError:  # it was the one that died
            continue
    assert answered >= 10
    wait_for(address)
    sent = {"input": "hello"}
    for _ in range(10):
        answer = httpx.post(f"{address}/v1/moderations", json=sent, timeout=60)
        assert answer.status_code == 200
    assert len(list_children(process)) == 2


def test_a_flood_of_connections_that_say_nothing(served: tuple[int, str]) -> None:
    _, address = served
    port = int(address.rpartition(":")[2])
    with ExitStack() as lines:
        for number in range(300):
            line = lines.enter_context(socket.create_connection(("127.0.0.1", port), timeout=10))
            if number % 2:
                line.sendall(b"POST /v1/moderations HTTP/1.1\r\nhost: localhost\r\n")
        began = time.monotonic()
        answer = httpx.post(f"{address}/v1/moderations", json={"input": "hello"}, timeout=60)
        assert answer.status_code == 200
        assert time.monotonic() - began < 30
