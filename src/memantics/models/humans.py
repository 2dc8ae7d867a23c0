"""``humans/FILE``: human annotations as a model that can be run, compared and reported.

The file is a table (CSV, TSV, JSON, JSON lines, Excel) with one row per answer of a person. Rows
are matched to a request by its image (without an image, by its text). If the table has a question
column, the question must match too. The answers of several people are combined by majority vote; a
tie counts as no answer. Settings follow the name:
``humans/votes.csv?answer=label&annotator=person&only=anna`` names the columns and selects the
answers of one person.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from urllib.parse import parse_qsl

from pydantic import JsonValue

from memantics.core.errors import DataError, InputError, Rejected, UnknownName
from memantics.core.files import read_regular
from memantics.core.memes import image_key, image_keys, question_key
from memantics.core.records import Image, Reply, Request
from memantics.core.tables import TableRow, read_rows
from memantics.models.kinds import ModelKind, answer_choice

# Default column names, used if the user gives none; the first name that exists in the table is
# used.
COLUMNS: Mapping[str, tuple[str, ...]] = {
    "image": ("image", "image_id", "meme", "group", "item", "id"),
    "text": ("text", "caption"),
    "question": ("question",),
    "answer": ("answer", "label", "choice", "vote"),
    "annotator": ("annotator", "person", "rater", "worker"),
}
Key = tuple[str, str]


class HumansModel:
    """Looks up human answers in a table."""

    cacheable = False

    def __init__(self, name: str) -> None:
        file, _, query = name.removeprefix("humans/").partition("?")
        wanted = dict(parse_qsl(query, keep_blank_values=True))
        self._only = wanted.pop("only", "")
        unknown = [role for role in wanted if role not in COLUMNS]
        if unknown:
            raise UnknownName("setting of humans/FILE:", unknown[0], [*COLUMNS, "only"])
        self.name, self._path = name, Path(file).expanduser()
        rows = [row for _, row in read_rows(self._path)]
        if not rows:
            raise DataError(self._path.name, "contains no answers", hint="add one row per answer")
        self._columns = self._find_columns(rows[0], wanted)
        self._said: dict[Key, list[str]] = {}
        people = set()
        for row in rows:
            person = row.get(self._columns.get("annotator", ""), "")
            if not self._only or person == self._only:
                people.add(person)
                self._note(row)
        if not self._said:
            raise InputError(
                f"{self._path.name} contains no answers of {self._only or 'any annotator'}",
                hint="choose an annotator in the table: ?only=NAME",
            )
        self.note = "people" if len(people) == 1 else f"human annotators: majority of {len(people)}"
        self._sum = hashlib.sha256(read_regular(self._path)).hexdigest()

    def _find_columns(self, row: TableRow, wanted: Mapping[str, str]) -> dict[str, str]:
        found = dict(wanted)
        for role, known in COLUMNS.items():
            name = wanted.get(role) or next((column for column in known if column in row), "")
            if name and name not in row:
                raise UnknownName(f"column of {self._path.name}:", name, row)
            if name:
                found[role] = name
        if "answer" not in found or not {"image", "text"} & set(found):
            absent = "answer" if "answer" not in found else "image"
            raise InputError(
                f"{self._path.name} has no recognised column for the {absent}; "
                f"its columns are {', '.join(list(row)[:20])}"[:400],
                hint=f"give the column: humans/{self._path.name}?{absent}=COLUMN",
            )
        if self._only and "annotator" not in found:
            raise InputError(
                f"{self._path.name} has no column for the annotator", hint="add ?annotator=COLUMN"
            )
        return found

    def _note(self, row: TableRow) -> None:
        cells = {role: row.get(name, "") for role, name in self._columns.items()}
        answer = cells["answer"].strip()
        keys = [("image", image_key(cells["image"]))] if cells.get("image") else []
        keys += [("text", question_key(cells["text"]))] if cells.get("text") else []
        question = question_key(cells.get("question", ""))
        for kind, key in keys if answer else ():
            self._said.setdefault((f"{kind}:{key}", question), []).append(answer)

    @property
    def identity(self) -> Mapping[str, JsonValue]:
        """The hash of the table's content and its settings."""
        columns: dict[str, JsonValue] = {**self._columns}
        return {"name": "humans", "sha256": self._sum, "columns": columns, "only": self._only}

    async def answer(self, request: Request) -> Reply:
        """Return the majority answer of the annotators."""
        said = self._find(request)
        if said is None:
            raise Rejected(
                f"{self._path.name} contains no answer to this question",
                hint="give the columns, for example ?image=COLUMN&question=COLUMN",
            )
        (first, most), *rest = Counter(said).most_common()
        votes = f"{most} of {len(said)} people"
        if rest and rest[0][1] == most:
            return Reply("", refusal=f"people are split: {votes} said {first!r}")
        return Reply(answer_choice(request.form, first), finish="stop", served_by=votes)

    async def close(self) -> None:
        """Do nothing: there is nothing to release."""

    def _find(self, request: Request) -> list[str] | None:
        question = question_key(request.form.question)
        for key in _list_keys(request):
            for asked in (question, ""):
                if (key, asked) in self._said:
                    return self._said[key, asked]
        return None


def _list_keys(request: Request) -> Iterable[str]:
    """Return the keys for matching a request with table rows: its images, else its texts."""
    parts = [part for message in request.messages for part in message.parts]
    images = image_keys(part for part in parts if isinstance(part, Image))
    yield from (f"image:{key}" for key in images)
    yield from (f"text:{question_key(text)}" for text in request.form.context.values())


KIND = ModelKind(
    "humans",
    "humans/FILE",
    "human answers from a table",
    lambda name, _: HumansModel(name),
)
