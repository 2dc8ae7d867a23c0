"""Reading the text in an image, with a table of what was read before."""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from typing import Self

import orjson
from pydantic import TypeAdapter, ValidationError

from memantics.core.home import home
from memantics.core.lines import ImageReading, Ocr, TextChoice
from memantics.models.embedded.rapid import Profile, RapidReader

_IN_MEMORY = 2048  # readings
_READING = TypeAdapter(ImageReading)


class RememberingOcr:
    """An OCR that looks in a small table first, keyed by image content and OCR version.

    Threads may share it: one of them reads at a time.

    ``folder`` is where the table lies. A folder that cannot be written costs speed and nothing
    else, so it is no error: readings are then kept in memory only. ``taken`` is which lines all who
    are handed this reader take for captions: what their roles say, or all.
    """

    def __init__(self, ocr: Ocr, folder: Path | None, taken: TextChoice = "caption") -> None:
        self.version = ocr.version if taken == "caption" else f"{ocr.version}/all text"
        self._ocr, self._taken = ocr, taken
        self._lock = threading.Lock()
        self._recent: OrderedDict[bytes, ImageReading] = OrderedDict()
        self._db = None if folder is None else _open_table(folder)

    def read(self, data: bytes, name: str) -> ImageReading:
        """The reading of an image, remembered or fresh."""
        version = self._ocr.version.encode()
        key = hashlib.sha256(version + b"\0" + hashlib.sha256(data).digest()).digest()
        with self._lock:
            found = self._recent.get(key) or self._load(key)
            if found is None:
                found = self._ocr.read(data, name)
                self._save(key, found)
            self._recent[key] = found
            self._recent.move_to_end(key)
            if len(self._recent) > _IN_MEMORY:
                self._recent.popitem(last=False)
        return replace(found, taken=self._taken)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the table."""
        if self._db is not None:
            self._db.close()
            self._db = None

    def _load(self, key: bytes) -> ImageReading | None:
        if self._db is None:
            return None
        try:
            row = self._db.execute("SELECT body FROM readings WHERE key = ?", (key,)).fetchone()
            return None if row is None else _READING.validate_json(row[0])
        except (sqlite3.Error, ValidationError):
            return None  # a damaged row is read afresh and written over

    def _save(self, key: bytes, reading: ImageReading) -> None:
        if self._db is None:
            return
        try:
            self._db.execute(
                "INSERT OR REPLACE INTO readings VALUES (?, ?)", (key, orjson.dumps(reading))
            )
        except sqlite3.Error:
            self.close()  # a full or read-only disk: go on in memory


def _open_table(folder: Path) -> sqlite3.Connection | None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The model's one worker thread uses it, and whoever closes the model.
        db = sqlite3.connect(
            folder / "readings.sqlite", isolation_level=None, timeout=5, check_same_thread=False
        )
    except (sqlite3.Error, OSError):
        return None
    try:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA synchronous=NORMAL")
        db.execute(
            "CREATE TABLE IF NOT EXISTS readings"
            " (key BLOB PRIMARY KEY, body BLOB NOT NULL) WITHOUT ROWID"
        )
    except sqlite3.Error:
        db.close()
        return None
    return db


def open_reader(profile: Profile = "thorough", text: TextChoice = "caption") -> RememberingOcr:
    """The OCR that ships, with the table of readings in the user's folder; every process its own.

    Opening it is cheap: the network is loaded when an image is read that is not in the table.
    """
    return RememberingOcr(RapidReader(profile), home() / "ocr", text)
