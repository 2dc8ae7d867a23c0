"""Files that are written whole or not at all, locks, and secrets that no file shows."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, quote_plus

import pytest

from memantics.core import files
from memantics.core.errors import StoreError
from memantics.core.files import (
    AppendOnlyFile,
    drop_torn_tail,
    hide,
    hide_bytes,
    in_turn,
    learn_environment,
    learn_named,
    learn_secrets,
    lock_folder,
    opening,
    read_regular,
    read_regular_text,
    read_whole_lines,
    refuse_unwritable,
    replace_file,
    whole_file,
    write_lines,
    write_text,
)


@pytest.fixture
def no_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_known", {})


@pytest.mark.usefixtures("no_secrets")
def test_a_secret_is_masked_in_each_spelling() -> None:
    secret = 'p/a s"s?w+ör&d'
    learn_secrets(secret)
    for spelled in (
        secret,
        json.dumps(secret)[1:-1],
        quote(secret, safe=""),
        quote(secret),
        quote(secret, safe="/:?@!$'()*,;"),
        quote_plus(secret),
    ):
        assert hide(f"<{spelled}|{spelled}>") == "<***|***>", spelled
    assert hide_bytes(f"<{secret}>".encode()) == b"<***>"
    assert hide("nothing \ud800 here") == "nothing \ud800 here"


@pytest.mark.usefixtures("no_secrets")
def test_short_values_are_no_secrets() -> None:
    learn_secrets("1234567", "", "12345678")
    assert hide("1234567 12345678") == "1234567 ***"


@pytest.mark.usefixtures("no_secrets")
def test_secrets_are_known_by_the_names_of_parameters() -> None:
    named: dict[str, object] = {
        "api_key": "value-one",
        "X-Api-Key": "value-two",
        "token": "value-three",
        "headers": {"Authorization": "value-four", "inner": {"client_secret": "value-five"}},
        "max_tokens": "plain-text-one",
        "keyboard": "plain-text-two",
        "password": 123456789,
    }
    learn_named(named.items())
    shown = hide(str(named))
    assert shown.count("***") == 5
    for kept in ("plain-text-one", "plain-text-two", "123456789"):
        assert kept in shown


@pytest.mark.usefixtures("no_secrets")
def test_secrets_are_known_by_the_names_of_variables() -> None:
    learn_environment(
        {
            "A_API_KEY": "value-one",
            "B_TOKEN": "value-two",
            "C_SECRET": "value-3",
            "D_KEYS": "open-one",
        }
    )
    assert hide("value-one value-two value-3 open-one") == "*** *** value-3 open-one"
    learn_environment({"C_SECRET": "value-three"})
    assert hide("value-three") == "***"


def test_texts_are_read_in_their_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes("ä\r\nb".encode("cp1252"))
    assert read_regular_text(path, "cp1252") == "ä\nb"
    assert read_regular_text(path, errors="replace") == "\ufffd\nb"
    with pytest.raises(UnicodeDecodeError):
        read_regular_text(path)
    with pytest.raises(OSError, match="4 bytes are more than the limit of 3"):
        read_regular_text(path, limit=3)


def test_a_file_that_states_no_size_is_read_to_its_end() -> None:
    whole = read_regular("/proc/self/maps")
    assert len(whole) > 1000
    assert whole.endswith(b"\n")
    name = read_regular("/proc/self/comm")
    assert read_regular("/proc/self/comm", len(name)) == name
    with pytest.raises(OSError, match=f"more than {len(name) - 1:,} bytes"):
        read_regular("/proc/self/comm", len(name) - 1)


def test_a_folder_has_one_writer(tmp_path: Path) -> None:
    lock = lock_folder(tmp_path)
    with pytest.raises(StoreError) as caught:
        lock_folder(tmp_path)
    assert str(caught.value) == (
        f"{tmp_path} is being written by another process; "
        "wait until it ends, or choose another --out"
    )
    lock.close()
    lock_folder(tmp_path).close()


def test_opening_unlocks_on_failure_alone(tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    with pytest.raises(ZeroDivisionError), opening(folder, "log"):
        raise ZeroDivisionError
    with opening(folder, "log") as lock, pytest.raises(StoreError, match="by another process"):
        lock_folder(folder)
    # The lock is held until the file is closed.
    with pytest.raises(StoreError, match="by another process"):
        lock_folder(folder)
    lock.close()
    lock_folder(folder).close()
    (tmp_path / "file").touch()
    with pytest.raises(StoreError) as caught, opening(tmp_path / "file" / "x", "log"):
        pass
    assert str(caught.value) == (
        "log cannot be written: Not a directory; choose another with --out"
    )


def test_an_unwritable_place_is_named() -> None:
    with pytest.raises(StoreError) as caught, refuse_unwritable("the log"):
        raise PermissionError(13, "Permission denied")
    assert str(caught.value) == "the log cannot be written: Permission denied; choose another --out"
    with pytest.raises(StoreError, match=r"denied; ask them$"), refuse_unwritable("x", "ask them"):
        raise PermissionError(13, "Permission denied")
    with pytest.raises(ValueError, match="other"), refuse_unwritable("x"):
        raise ValueError("other")


def test_processes_take_turns(tmp_path: Path) -> None:
    """A second one waits until the first has left, and no file is left behind."""
    folder, order = tmp_path / "new" / "x", list[str]()
    entered = threading.Event()

    def second() -> None:
        entered.wait(30)
        with in_turn(folder):
            order.append("second")

    waiting = threading.Thread(target=second)
    waiting.start()
    with in_turn(folder):
        entered.set()
        waiting.join(0.2)
        order.append("first")
    waiting.join(30)
    assert order == ["first", "second"]
    assert list(folder.iterdir()) == []
    with pytest.raises(ZeroDivisionError), in_turn(folder):
        raise ZeroDivisionError
    with in_turn(folder):
        pass


@pytest.mark.parametrize(
    ("before", "after"),
    [(b"", b""), (b"\n", b"\n"), (b"a", b""), (b"a\nb", b"a\n"), (b"a\nb\n", b"a\nb\n")],
)
def test_a_torn_tail_is_removed(before: bytes, after: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a"
    drop_torn_tail(path)
    assert not path.exists()
    path.write_bytes(before)
    drop_torn_tail(path)
    assert path.read_bytes() == after


@pytest.mark.parametrize("size", [65534, 65535, 65536, 131071, 131072, 131073])
def test_a_long_torn_tail_is_removed_at_every_edge_of_a_block(size: int, tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"x\ny\n" + b"z" * size)
    drop_torn_tail(path)
    assert path.read_bytes() == b"x\ny\n"
    path.write_bytes(b"z" * size)
    drop_torn_tail(path)
    assert path.read_bytes() == b""


def test_whole_lines_are_numbered_from_one(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"a\n\nb\nc")
    assert list(read_whole_lines(path)) == [(1, b"a\n"), (2, b"\n"), (3, b"b\n")]


@pytest.mark.usefixtures("no_secrets")
def test_places_of_appended_lines_are_those_in_the_file(tmp_path: Path) -> None:
    learn_secrets("a-long-secret")
    path = tmp_path / "a"
    path.write_bytes(b"1234\nto")
    log = AppendOnlyFile(path, "log")
    places = [log.append(line) for line in (b"a-long-secret\n", b"\n", b"xyz\n")]
    log.close()
    whole = path.read_bytes()
    assert whole == b"1234\n***\n\nxyz\n"
    assert places == [5, 9, 10]
    assert [whole[place:].split(b"\n")[0] for place in places] == [b"***", b"", b"xyz"]


@pytest.mark.usefixtures("no_secrets")
def test_a_file_is_replaced_in_one_step(tmp_path: Path) -> None:
    learn_secrets("a-long-secret")
    path = tmp_path / "new" / "a"
    replace_file(path, b"<a-long-secret>")
    assert path.read_bytes() == b"<***>"
    replace_file(path, b"")
    assert path.read_bytes() == b""
    assert list(path.parent.iterdir()) == [path]
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError) as caught:
        replace_file(tmp_path / "folder", b"x", "page", "--to")
    assert str(caught.value) == (
        f"page {tmp_path / 'folder'} cannot be written: Is a directory; choose another --to"
    )
    assert not list(tmp_path.glob("folder.*")), "nothing is left of the attempt"
    with pytest.raises(StoreError) as caught:
        replace_file(path / "below", b"x")
    assert str(caught.value) == (
        f"file {path / 'below'} cannot be written: File exists; choose another --out"
    )


def test_texts_are_written_with_question_marks_for_half_characters(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.html"
    assert write_text(str(path), "表\ud800\n") == path
    assert path.read_bytes() == "表?\n".encode()
    with pytest.raises(StoreError, match=r"^page .*; choose another --out$"):
        write_text(tmp_path, "x")


@pytest.mark.usefixtures("no_secrets")
def test_long_files_appear_when_they_are_complete(tmp_path: Path) -> None:
    learn_secrets("a-long-secret")
    path = tmp_path / "a.jsonl"
    assert write_lines(path, [{"a": "a-long-secret"}, [1]]) == path
    assert path.read_bytes() == b'{"a":"***"}\n[1]\n'

    def break_off() -> Iterator[object]:
        yield 1
        assert [one.name.split(".")[-1] for one in tmp_path.glob("a.jsonl.*")] == ["part"]
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_lines(path, break_off())
    assert path.read_bytes() == b'{"a":"***"}\n[1]\n', "the file before is unchanged"
    assert [one for one in tmp_path.iterdir() if one.is_file()] == [path]
    with whole_file(path, masked=False) as file:
        assert file.write(b"a-long-secret") == 13
    assert path.read_bytes() == b"a-long-secret"
    with whole_file(path) as file:
        assert file.write(b"a-long-secret") == 13, "the length of what was given"
    assert path.read_bytes() == b"***"


def test_a_temporary_file_is_that_of_its_process_and_thread(tmp_path: Path) -> None:
    with whole_file(tmp_path / "a"):
        (part,) = tmp_path.glob("a.*")
    assert part.name == f"a.{os.getpid()}.{threading.get_ident()}.part"
