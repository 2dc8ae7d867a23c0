"""``recorded/FILE``: replay the answers of an earlier run without the model.

A recording is a run directory, its ``answers.jsonl``, or any JSON lines file with ``prompt`` and
``text`` in each line. ``prompt`` is the hash of the request (messages, image bytes, schema),
independent of the model. A request that is not in the recording fails with an error. Repeated
answers to one request are returned in their order.

A line may also have ``picture``, the hash of the images and the schema alone. It then answers every
request with this image and schema whose texts are not recorded, for example because another
language model gives another homophone hint.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from typing import IO

import orjson
from pydantic import JsonValue, ValidationError

from memantics.core.errors import DataError, Rejected, first_fault
from memantics.core.files import open_regular
from memantics.core.records import Lenient, Reply, Request
from memantics.core.rundir import ANSWERS
from memantics.models.cache import picture_digest, request_digest
from memantics.models.kinds import ModelKind


class _RecordedLine(Lenient):
    """A line of a recording, such as a line of ``answers.jsonl``."""

    prompt: str
    reply: Reply
    picture: str = ""
    status: str = "answered"


_REPLY = frozenset(part.name for part in fields(Reply))


def _nest_reply(line: object) -> object:
    """Normalise a line whose ``text`` is beside ``prompt`` instead of inside ``reply``."""
    if not isinstance(line, dict) or isinstance(line.get("reply"), dict):
        return line
    said = {name: line[name] for name in _REPLY & line.keys()}
    rest = {name: value for name, value in line.items() if name not in _REPLY}
    return {**rest, "reply": {"text": "", **said}}


class RecordedModel:
    """Replays the answers of a recording. Only line offsets are kept in memory."""

    note = "recorded"
    cacheable = False

    def __init__(self, path: Path) -> None:
        self.name = f"recorded/{path}"
        self._path = path / ANSWERS if path.is_dir() else path
        self._places: dict[str, list[int]] = {}
        self._turns: dict[str, int] = {}
        try:
            self._file: IO[bytes] = open_regular(self._path)
        except OSError as error:
            raise DataError(
                self._path,
                f"cannot be read: {error.strerror}",
                hint=f"give a run directory, or a file in the format of {ANSWERS}",
            ) from error
        try:
            self._sum = hashlib.file_digest(self._file, "sha256").hexdigest()
            self._index()
        except BaseException:
            self._file.close()
            raise

    def _index(self) -> None:
        for place, line in self._lines():
            # A failed call has no answer to replay.
            if line.status != "failed" and line.prompt:
                self._places.setdefault(line.prompt, []).append(place)
                if line.picture:
                    self._places.setdefault(f"picture {line.picture}", []).append(place)
        if not self._places:
            raise DataError(
                self._path, "contains no answers", hint="record a run with a real model"
            )

    def _lines(self) -> Iterator[tuple[int, _RecordedLine]]:
        place = self._file.seek(0)
        for number, raw in enumerate(self._file, 1):
            if raw.strip() and raw.endswith(b"\n"):
                yield place, self._read(raw, number)
            place += len(raw)

    def _read(self, raw: bytes, number: int) -> _RecordedLine:
        try:
            return _RecordedLine.model_validate(_nest_reply(orjson.loads(raw)))
        except orjson.JSONDecodeError as error:
            raise DataError(self._path, f"not valid JSON: {error}", row=number) from error
        except ValidationError as error:
            raise DataError(self._path, first_fault(error), row=number) from error

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The hash of the recording's content, independent of its path."""
        return {"name": "recorded", "sha256": self._sum}

    async def answer(self, request: Request) -> Reply:
        """Return the recorded answer to a request."""
        digest = request_digest(request)
        known = next(
            (key for key in (digest, f"picture {picture_digest(request)}") if key in self._places),
            None,
        )
        if known is None:
            raise Rejected(
                f"{self._path.name} contains no answer to this request ({digest[:12]})",
                hint="use the same task, options and data as the recorded run",
            )
        places, turn = self._places[known], self._turns.get(known, 0)
        self._turns[known] = turn + 1
        self._file.seek(places[min(turn, len(places) - 1)])
        return self._read(self._file.readline(), 0).reply

    async def close(self) -> None:
        """Close the file of the recording."""
        self._file.close()


KIND = ModelKind(
    "recorded",
    "recorded/FILE",
    "replay of the answers of an earlier run",
    lambda name, _: RecordedModel(Path(name.removeprefix("recorded/"))),
)
