from __future__ import annotations

import hashlib
import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from memantics.core.errors import InputError, StoreError
from memantics.moderation.fast import train
from memantics.moderation.heads import find_preset
from memantics.moderation.storage import load, load_with_card, save
from tests.moderation.samples import make_examples


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "detector.zip"
    save(train(make_examples(80), find_preset("fast")), path, {"checksum": "abc"})
    return path


@pytest.mark.parametrize("preset", ["fast", "ridge", "linear"])
def test_the_same_digits_after_save_and_load(preset: str, tmp_path: Path) -> None:
    detector = train(make_examples(80), find_preset(preset))
    save(detector, tmp_path / "a.zip")
    again = load(tmp_path / "a.zip")
    unseen = make_examples(50, seed=3)
    assert again.predict(unseen) == detector.predict(unseen)
    assert again.settings == detector.settings
    save(again, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_the_card_travels_along(stored: Path) -> None:
    assert load_with_card(stored)[1] == {"checksum": "abc"}


def rewrite(source: Path, target: Path, change: Callable[[str, bytes], bytes | None]) -> Path:
    """A copy with parts changed or, where ``change`` gives None, left out."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            body = change(name, old.read(name))
            if body is not None:
                new.writestr(name, body)
    return target


def test_a_tampered_part_is_refused(stored: Path, tmp_path: Path) -> None:
    def nudge(name: str, body: bytes) -> bytes:
        return body[:-1] + bytes([body[-1] ^ 1]) if name == "duals.npy" else body

    with pytest.raises(InputError, match=r"part duals\.npy was changed.*train the model again"):
        load(rewrite(stored, tmp_path / "t.zip", nudge))


def test_a_part_that_is_missing_or_new_is_refused(stored: Path, tmp_path: Path) -> None:
    lost = rewrite(stored, tmp_path / "t.zip", lambda n, b: None if n == "duals.npy" else b)
    with pytest.raises(InputError, match="missing or unexpected"):
        load(lost)


def change_manifest(stored: Path, target: Path, **fields: object) -> Path:
    def change(name: str, body: bytes) -> bytes:
        if name != "model.json":
            return body
        return json.dumps(json.loads(body) | fields).encode()

    return rewrite(stored, target, change)


def test_another_version_is_named(stored: Path, tmp_path: Path) -> None:
    path = change_manifest(stored, tmp_path / "t.zip", version=3)
    with pytest.raises(InputError, match=r"version 3; expected .* version 2"):
        load(path)
    with pytest.raises(InputError, match="another version of Memantics"):
        load(change_manifest(stored, tmp_path / "u.zip", unseen_ngram_rate=1))


def test_settings_that_do_not_fit_are_refused(stored: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="are inconsistent"):
        load(change_manifest(stored, tmp_path / "t.zip", settings={"preset": "fast"}))


class Trap:
    """What a pickle would run when it is loaded."""

    sprung = False

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return setattr, (Trap, "sprung", True)


def forge(stored: Path, folder: Path, part: str, body: bytes) -> Path:
    """A copy with one part replaced and the checksums made to fit."""
    with zipfile.ZipFile(stored) as archive:
        parts = json.loads(archive.read("model.json"))["parts"]
    parts[part] = hashlib.sha256(body).hexdigest()
    path = change_manifest(stored, folder / "checksums.zip", parts=parts)
    return rewrite(path, folder / "forged.zip", lambda n, b: body if n == part else b)


def dump(array: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


HUGE = dump(np.zeros(3, np.float32)).replace(b"(3,)", b"(9" + b"9" * 17 + b",)")


@pytest.mark.parametrize(
    ("part", "body"),
    [
        ("pieces.json", b"[1, 2, 3, 4, 5]"),
        ("pieces.json", b'{"a": 1}'),
        ("card.json", b"[]"),
        ("card.json", b"{"),
        ("duals.npy", dump(np.zeros((80, 2), np.float32))),
        ("duals.npy", b""),
        ("harm_mean.npy", dump(np.zeros(3, np.float32))),
        ("kinds_weights.npy", dump(np.zeros((7, 2), np.float32))),
        ("known_columns.npy", dump(np.full(5, 1e9, np.float32))),
        ("biases.npy", HUGE),
        ("duals.npy", dump(np.zeros((0, 6), np.float32))),
        ("duals.npy", dump(np.full((80, 6), np.nan, np.float32))),
        ("known_values.npy", dump(np.zeros(0, np.float32))),
        ("rarity_0.npy", dump(np.zeros(0, np.float32))),
        ("harm_mean.npy", dump(np.zeros(1, np.float32))),
        ("harm_mean.npy", dump(np.full(7, np.inf, np.float32))),
        ("harm_deviation.npy", dump(np.zeros(7, np.float32))),
        ("harm_deviation.npy", dump(np.ones(1, np.float32))),
        ("harm_weights.npy", dump(np.zeros((7, 0), np.float32))),
        ("harm_weights.npy", dump(np.zeros((7, 3), np.float32))),
        ("harm_intercepts.npy", dump(np.array([0, np.nan], np.float32))),
        ("kinds_deviation.npy", dump(np.full(7, -1, np.float32))),
        ("biases.npy", dump(np.zeros(0, np.float32))),
        ("biases.npy", dump(np.full(5, -np.inf, np.float32))),
        ("biases.npy", dump(np.array(["a"] * 5))),
    ],
)
def test_parts_that_do_not_fit_are_refused_at_once(
    stored: Path, tmp_path: Path, part: str, body: bytes
) -> None:
    """Even where the checksums were made to fit: an error, no traceback, and before any verdict."""
    with pytest.raises(InputError, match=r"forged\.zip: its .*train the model again"):
        load(forge(stored, tmp_path, part, body))


@pytest.mark.parametrize(
    "fields",
    [
        {"threshold": float("nan")},
        {"threshold": float("inf")},
        {"threshold": 1.01},
        {"threshold": -0.01},
        {"scale": 0},
        {"scale": float("nan")},
        {"ridge": float("-inf")},
        {"examples": 0},
        {"examples": 79},
        {"heads": ["harmful"]},
    ],
)
def test_numbers_that_judge_nothing_are_refused(
    stored: Path, tmp_path: Path, fields: dict[str, object]
) -> None:
    """A detector with a threshold that is no number called every meme harmless."""
    with pytest.raises(InputError, match=r"t\.zip: .*train the model again"):
        load(change_manifest(stored, tmp_path / "t.zip", **fields))


def test_thresholds_at_the_ends_are_numbers(stored: Path, tmp_path: Path) -> None:
    unseen = make_examples(30, seed=3)
    for threshold, labels in ((0.0, {1}), (1.0, {0})):
        found = load(change_manifest(stored, tmp_path / "t.zip", threshold=threshold))
        assert {said.label for said in found.predict(unseen)} == labels


def test_settings_that_are_no_numbers_are_refused(stored: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(stored) as archive:
        settings = json.loads(archive.read("model.json"))["settings"]
    settings["kernel"]["offset"] = float("nan")
    with pytest.raises(InputError, match="contain a value that is not a number"):
        load(change_manifest(stored, tmp_path / "t.zip", settings=settings))


@pytest.mark.parametrize("part", ["linear_sparse", "linear_intercepts"])
def test_linear_weights_that_are_no_numbers_are_refused(part: str, tmp_path: Path) -> None:
    save(train(make_examples(80), find_preset("ridge")), tmp_path / "r.zip")
    with zipfile.ZipFile(tmp_path / "r.zip") as archive:
        array = np.load(io.BytesIO(archive.read(f"{part}.npy")))
    array.flat[0] = np.nan
    with pytest.raises(InputError, match=f"{part} contains a value that is not a number"):
        load(forge(tmp_path / "r.zip", tmp_path, f"{part}.npy", dump(array)))
    with pytest.raises(InputError, match="are inconsistent"):
        load(forge(tmp_path / "r.zip", tmp_path, f"{part}.npy", dump(array[:1])))


def test_nothing_is_ever_unpickled(stored: Path, tmp_path: Path) -> None:
    """Not even where the checksums were made to fit."""
    file = io.BytesIO()
    np.save(file, np.array([Trap()], dtype=object), allow_pickle=True)
    with pytest.raises(InputError, match="are inconsistent"):
        load(forge(stored, tmp_path, "biases.npy", file.getvalue()))
    assert not Trap.sprung
    plain = tmp_path / "p.zip"
    plain.write_bytes(pickle.dumps({"model": 1}))
    with pytest.raises(InputError, match="not a detector file"):
        load(plain)


def test_cut_off_and_foreign_files_are_refused(stored: Path, tmp_path: Path) -> None:
    body = stored.read_bytes()
    for size in (0, 10, len(body) // 2, len(body) - 30):
        (tmp_path / "cut.zip").write_bytes(body[:size])
        with pytest.raises(InputError, match=r"cut\.zip"):
            load(tmp_path / "cut.zip")
    middle = bytearray(body)
    middle[len(body) // 2] ^= 0xFF
    (tmp_path / "bent.zip").write_bytes(bytes(middle))
    with pytest.raises(InputError, match=r"bent\.zip"):
        load(tmp_path / "bent.zip")
    with zipfile.ZipFile(tmp_path / "z.zip", "w") as other:
        other.writestr("hello", "hi")
    with pytest.raises(InputError, match="a zip file, but not a detector"):
        load(tmp_path / "z.zip")
    with pytest.raises(InputError, match="no detector at"):
        load(tmp_path / "absent.zip")
    with pytest.raises(InputError):
        load(tmp_path)


def test_a_place_that_cannot_be_written_is_an_error(stored: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreError, match="cannot be written"):
        save(load(stored), tmp_path / "file" / "m.zip")
