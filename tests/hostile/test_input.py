"""Standard input is as hostile as any file."""

from __future__ import annotations

import io
import sys

import pytest

from memantics.cli import terminal
from memantics.core.errors import InputError
from memantics.core.result import Table


def feed(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))


@pytest.mark.parametrize("data", [b"\xff", b"ok\n\xed\xa0\x80", "ok".encode("utf-16")])
def test_bytes_that_are_not_utf8_are_refused(monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
    feed(monkeypatch, data)
    with pytest.raises(InputError, match=r"standard input: .*; use UTF-8"):
        terminal.read_input()


def test_input_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "MOST_INPUT", 5)
    feed(monkeypatch, b"\xef\xbb\xbfab")
    assert terminal.read_input() == "ab"
    feed(monkeypatch, b"abcdef")
    with pytest.raises(InputError, match="more than 5 bytes"):
        terminal.read_input()


def test_a_table_shows_the_beginning_of_an_endless_cell(
    capsys: pytest.CaptureFixture[str],
) -> None:
    terminal.show_table(Table(("x",), (("a" * 2000,), ("b" * 8_000_000,))))
    out = capsys.readouterr().out
    assert out.count("a") == 2000 + "characters".count("a")
    assert out.count("b") == 2000
    assert "(8,000,000 characters)" in out.replace("\n", "").replace("  ", "")
