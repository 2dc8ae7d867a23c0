"""Read answer files of other tools, and join their rows to the items of a task.

- ``inspect``: logs of Inspect, ``.eval`` or ``.json`` (extra ``inspect``).
- ``lmms-eval``: ``*_samples_*.jsonl`` of lmms-eval, ``samples_*.jsonl`` of lm-eval.
- ``vlmevalkit``: tables of VLMEvalKit, ``.xlsx`` (extra ``tables``), ``.tsv`` or ``.json``.
- ``openai-batch``: the output file of OpenAI's batch interface.
- ``table``: any CSV, TSV, JSON, JSON-lines or Excel table with named columns.

Rows without exactly one matching item are listed, never guessed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import orjson
from pydantic import JsonValue

from memantics.benchmarks.factories import LETTERS
from memantics.core.data import read_jsonl
from memantics.core.errors import (
    DataError,
    InputError,
    MissingExtra,
    ModelError,
    UnknownName,
)
from memantics.core.files import open_regular, read_regular
from memantics.core.memes import image_key, item_images, question_key
from memantics.core.records import Item, Reply
from memantics.core.tables import TableRow, check_archive, check_size, read_rows, write_cell
from memantics.core.text import mask_unseen, repair_surrogates
from memantics.models.wire import decode_reply, split_thought

if TYPE_CHECKING:
    from inspect_ai.model import ModelOutput

AnswerFormat = Literal["inspect", "lmms-eval", "vlmevalkit", "openai-batch", "table"]
ANSWER_FORMATS: tuple[AnswerFormat, ...] = get_args(AnswerFormat)
ColumnRole = Literal["id", "image", "question", "answer", "gold", "gold_text"]
ROLES: tuple[ColumnRole, ...] = get_args(ColumnRole)
# Default column names by role; the first one present is used.
KNOWN_COLUMNS: Mapping[ColumnRole, tuple[str, ...]] = {
    "id": ("id", "item", "item_id", "index"),
    "image": ("image_id", "image", "meme"),
    "question": ("question",),
    "answer": ("prediction", "model_choice", "response", "reply", "output", "answer"),
    "gold": ("ground_truth", "gold", "target"),
    "gold_text": ("ground_truth_text",),
}
# VLMEvalKit writes this text into the answer cell of a failed call.
_FAILED_CALL = "Failed to obtain answer"
_LONGEST = 1_000_000


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """One row of an answer file that another tool wrote.

    ``place`` is the item's index, from 0, in the order of the task. ``epoch`` is the number of the
    repetition in the other tool, from 1. ``failure`` is the reason of a failed call. ``gold`` and
    ``gold_text`` are the gold answer in the file; if they differ from the gold answer of the item,
    the row is about another question.
    """

    row: int
    reply: Reply
    id: str = ""
    place: int | None = None
    image: str = ""
    question: str = ""
    gold: str = ""
    gold_text: str = ""
    failure: str = ""
    epoch: int = 1


@dataclass(frozen=True, slots=True)
class SkippedRow:
    """An excluded row of an answer file, and the reason."""

    row: int
    reason: str
    id: str = ""
    image: str = ""
    question: str = ""


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings for reading an answer file: format (None: detected), columns, renamed values."""

    format: AnswerFormat | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, str] = field(default_factory=dict)


_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Joined:
    """The answers of items with exactly one matching row, and the excluded rows.

    ``repeated`` counts rows that are equal to an earlier row.
    """

    answers: Mapping[str, GivenAnswer]
    skipped: tuple[SkippedRow, ...]
    rows: int
    repeated: int = 0


class _Items:
    """The items of a task by id, by image and question, and by index."""

    def __init__(self, items: Sequence[Item]) -> None:
        self.by_id = {item.id: item for item in items}
        self._order = items
        self._by_image: dict[str, list[Item]] = {}
        for item in items:
            for key in item_images(item):
                self._by_image.setdefault(key, []).append(item)

    def find(self, given: GivenAnswer) -> Item | str:
        """Return the item that matches a row, or the reason why there is none."""
        if given.id and given.id in self.by_id:
            return self.by_id[given.id]
        if given.image:
            return self._find_by_image(given)
        if given.id:
            return "no item has this id"
        if given.place is not None and given.place < len(self._order):
            return self._order[given.place]
        return "no item has this index" if given.place is not None else "no id and no image"

    def _find_by_image(self, given: GivenAnswer) -> Item | str:
        found = self._by_image.get(image_key(given.image), [])
        if not found:
            return "no item has this image"
        if given.question:
            wanted = question_key(given.question)
            found = [item for item in found if question_key(item.form.question) == wanted]
            if not found:
                return "no item has this image and this question"
        if len({item.id for item in found}) > 1:
            return f"ambiguous: {len(found)} items match"
        return found[0]


def join_epochs(items: Sequence[Item], rows: Iterable[GivenAnswer]) -> list[Joined]:
    """Join the rows of each epoch (repetition) to items, in order; there is at least one epoch."""
    epochs: dict[int, list[GivenAnswer]] = {}
    for given in rows:
        epochs.setdefault(given.epoch, []).append(given)
    return [join(items, epochs[epoch]) for epoch in sorted(epochs)] or [join(items, ())]


def join(items: Sequence[Item], rows: Iterable[GivenAnswer]) -> Joined:
    """Join rows to items; an item with contradicting rows gets no answer."""
    known, count, repeated = _Items(items), 0, 0
    held: dict[str, GivenAnswer] = {}
    disputed: dict[str, list[GivenAnswer]] = {}
    skipped: list[SkippedRow] = []
    for given in rows:
        count += 1
        item = known.find(given)
        reason = item if isinstance(item, str) else _differs(item, given)
        if reason or isinstance(item, str):
            skipped.append(_leave(given, reason))
        elif item.id not in held:
            held[item.id] = given
        elif _same(held[item.id], given):
            repeated += 1
        elif given.failure:
            skipped.append(_leave(given, given.failure))
        elif held[item.id].failure:
            skipped.append(_leave(held[item.id], held[item.id].failure))
            held[item.id] = given
        else:
            disputed.setdefault(item.id, []).append(given)
    for name, others in disputed.items():
        several = [held.pop(name), *others]
        reason = f"ambiguous: {len(several)} rows answer item {name} differently"
        skipped += [_leave(given, reason) for given in several]
    skipped.sort(key=lambda omission: omission.row)
    return Joined(held, tuple(skipped), count, repeated)


def _same(first: GivenAnswer, second: GivenAnswer) -> bool:
    return (first.reply.text, first.failure) == (second.reply.text, second.failure)


def _differs(item: Item, given: GivenAnswer) -> str:
    """Whether the gold answer of a row differs from the item's, so that it is another question."""
    if not isinstance(item.gold, str):
        return ""
    gold = given.gold.strip()
    if gold and gold.casefold() != item.gold.casefold():
        return f"gold answers differ: {gold!r} in the file, {item.gold!r} in the task"[:_SHOWN]
    texts = {o.key: o.text for field in item.form.fields for o in field.options}
    text = given.gold_text.strip()
    if text and item.gold in texts and question_key(text) != question_key(texts[item.gold]):
        return "the text of the correct option differs"
    return ""


def _leave(given: GivenAnswer, reason: str) -> SkippedRow:
    shown = (mask_unseen(text)[:_SHOWN] for text in (given.id, given.image, given.question))
    return SkippedRow(given.row, mask_unseen(reason)[:_SHOWN], *shown)


def read_given(path: Path, settings: ReadSettings) -> tuple[AnswerFormat, Iterator[GivenAnswer]]:
    """Return the format of an answer file and its answers in order."""
    check_size(path)
    if settings.format is not None and settings.format not in ANSWER_FORMATS:
        raise UnknownName("format", settings.format, ANSWER_FORMATS)
    unknown = [role for role in settings.columns if role not in ROLES]
    if unknown:
        raise UnknownName("column role:", unknown[0], ROLES)
    kind = settings.format or find_format(path)
    readers: dict[AnswerFormat, Callable[[Path], Iterator[GivenAnswer]]] = {
        "inspect": _read_inspect,
        "lmms-eval": _read_samples,
        "openai-batch": _read_batch,
        "vlmevalkit": lambda folder: _read_table(
            folder, {"gold": "answer"} | dict(settings.columns)
        ),
        "table": lambda folder: _read_table(folder, settings.columns),
    }
    return kind, (_rename(_part(given), settings.values) for given in readers[kind](path))


def find_format(path: Path) -> AnswerFormat:
    """Detect the tool that wrote an answer file, by the file's extension and first record."""
    ending = path.suffix.lower()
    if ending == ".eval":
        return "inspect"
    if ending == ".json":
        with open_regular(path) as file:
            if file.read(64).lstrip().startswith(b"{"):
                return _check_log(path)
    names = set(next(iter(read_rows(path)), (0, {}))[1])
    if {"custom_id", "response"} <= names:
        return "openai-batch"
    if {"doc_id", "filtered_resps"} <= names:
        return "lmms-eval"
    return "vlmevalkit" if {"index", "prediction"} <= names else "table"


def _check_log(path: Path) -> AnswerFormat:
    """Check that a single JSON object is an Inspect log; an error names the actual content."""
    try:
        held = orjson.loads(read_regular(path))
    except ValueError:
        return "inspect"  # The reader of the format reports where the file is damaged.
    if {"eval", "samples"} & set(held):
        return "inspect"
    numbers = [name for name, value in held.items() if isinstance(value, int | float)]
    names = ", ".join(list(numbers or held)[:5])
    what = "has metrics but no answers" if numbers else "is one JSON object, not a list of answers"
    hint = "give a file with one answer per item: a JSON list, JSON lines or a table"
    raise DataError(path.name, f"{what}: {names}"[:300], hint=hint)


def _part(given: GivenAnswer) -> GivenAnswer:
    """Separate the chain of thought, which some tools leave in the text, from the answer."""
    reply = given.reply
    thought, text = split_thought(reply.text)
    if not thought:
        return given
    return replace(given, reply=replace(reply, text=text, reasoning=reply.reasoning or thought))


def _rename(given: GivenAnswer, values: Mapping[str, str]) -> GivenAnswer:
    """Rename an answer value as the user specified, such as 1 to harmful."""
    if not values:
        return given
    text = values.get(given.reply.text.strip(), given.reply.text)
    gold = values.get(given.gold.strip(), given.gold)
    return replace(given, reply=replace(given.reply, text=text), gold=gold)


def _read_table(path: Path, columns: Mapping[str, str]) -> Iterator[GivenAnswer]:
    rows = read_rows(path)
    first = next(rows, None)
    if first is None:
        raise DataError(path.name, "has no rows", hint="give a table with one row per answer")
    names = _find_columns(path, first[1], columns)
    for number, row in chain([first], rows):
        cells = dict.fromkeys(ROLES, "") | {role: row.get(n, "") for role, n in names.items()}
        answer = cells["answer"]
        failed = answer if answer.startswith(_FAILED_CALL) else ""
        yield GivenAnswer(
            number,
            Reply("" if failed else answer),
            id=cells["id"],
            image=cells["image"],
            question=cells["question"],
            gold=cells["gold"],
            gold_text=cells["gold_text"],
            failure=failed,
        )


def _find_columns(path: Path, row: TableRow, wanted: Mapping[str, str]) -> dict[ColumnRole, str]:
    """Find the column of each role (id, answer, …); an empty name means that there is none."""
    missing = [name for name in wanted.values() if name and name not in row]
    # The gold column of VLMEvalKit's tables is a default and may be absent.
    missing = [name for name in missing if (name, wanted.get("gold")) != ("answer", "answer")]
    if missing:
        raise UnknownName(f"column of {path.name}:", missing[0], row)
    found: dict[ColumnRole, str] = {}
    for role, known in KNOWN_COLUMNS.items():
        name = wanted[role] if role in wanted else next((n for n in known if n in row), "")
        if name == "answer" and "answer" not in wanted.values() and _names_others(row):
            # The column 'answer' may contain the gold answer, and another column the model's
            # answer.
            continue
        if name in row:
            found[role] = name
    listed = ", ".join(list(row)[:20])
    if "answer" not in found:
        raise InputError(
            f"{path.name} has no known answer column; columns: {listed}"[:400],
            hint="name it with --column answer=NAME",
        )
    if not {"id", "image"} & set(found):
        raise InputError(
            f"{path.name} has neither an id column nor an image column; columns: {listed}"[:400],
            hint="name one with --column id=NAME or --column image=NAME",
        )
    return found


def _names_others(row: TableRow) -> bool:
    """Whether a table has columns whose role is unknown."""
    return bool(set(row) - {name for names in KNOWN_COLUMNS.values() for name in names})


def _read_samples(path: Path) -> Iterator[GivenAnswer]:
    """Read sample files of lmms-eval (without the document) and of lm-eval (with it)."""
    for number, line in read_jsonl(path):
        if not isinstance(line, dict) or "doc_id" not in line:
            raise DataError(
                path.name, "is not a sample record: the field doc_id is missing", row=number
            )
        doc, ours = line.get("doc"), line.get("memantics")
        known = doc if isinstance(doc, dict) else {}
        if isinstance(ours, dict):  # Returned by the task files that export_task writes.
            known = ours | known
        place = line["doc_id"]
        yield GivenAnswer(
            number,
            Reply(_bound(_first_text(line.get("resps", line.get("filtered_resps"))))),
            id=write_cell(known.get("id")),
            place=place if isinstance(place, int) and place >= 0 else None,
            image=write_cell(known.get("image_id", known.get("meme"))),
            question=write_cell(known.get("question")),
            gold=write_cell(line.get("target")),
        )


def _first_text(value: JsonValue) -> str:
    """Return the reply from nested lists, or the letter of the most likely option.

    >>> _first_text([["B"]]), _first_text([[[-2.5, False]], [[-0.5, True]]])
    ('B', 'B')
    """
    chances = [_read_chance(one) for one in value] if isinstance(value, list) else []
    likely = [chance for chance in chances if chance is not None]
    if 1 < len(likely) == len(chances) <= len(LETTERS):
        return LETTERS[likely.index(max(likely))]
    while isinstance(value, list):
        value = value[0] if value else ""
    return write_cell(value)


def _read_chance(value: JsonValue) -> float | None:
    """Return the log-likelihood of an option from a pair (log-likelihood, whether it is greedy)."""
    while isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, list) and len(value) == 2 and isinstance(value[1], bool):
        return float(value[0]) if isinstance(value[0], int | float) else None
    return None


def _bound(text: str) -> str:
    return text[:_LONGEST]


def _read_batch(path: Path) -> Iterator[GivenAnswer]:
    for number, line in read_jsonl(path):
        if not isinstance(line, dict) or not isinstance(line.get("custom_id"), str):
            raise DataError(
                path.name, "is not a batch record: the field custom_id is missing", row=number
            )
        name, response = str(line["custom_id"]), line.get("response")
        if line.get("error") or not isinstance(response, dict):
            reason = _tell(line.get("error"))
            yield GivenAnswer(number, Reply(""), id=name, failure=reason)
            continue
        body = response.get("body")
        if response.get("status_code") != 200:
            reason = f"status {response.get('status_code')}: {_tell(body)}"
            yield GivenAnswer(number, Reply(""), id=name, failure=reason)
            continue
        try:
            reply = decode_reply(orjson.dumps(body))
        except ModelError as error:
            yield GivenAnswer(number, Reply(""), id=name, failure=str(error))
            continue
        yield GivenAnswer(number, replace(reply, text=_bound(reply.text)), id=name)


def _tell(error: JsonValue) -> str:
    """Shorten a server's message to one line."""
    while isinstance(error, dict) and (inner := error.get("message") or error.get("error")):
        error = inner
    return " ".join(write_cell(error).split())[:300] or "no response"


def _read_inspect(path: Path) -> Iterator[GivenAnswer]:
    """Read the samples of an Inspect log in order, over all epochs."""
    if path.suffix.lower() == ".eval":
        check_archive(path)
    try:
        from inspect_ai.log import read_eval_log_samples
    except ModuleNotFoundError as error:
        raise MissingExtra("Inspect logs", "inspect") from error
    samples = read_eval_log_samples(
        str(path), all_samples_required=False, resolve_attachments=True, exclude_fields={"events"}
    )
    number = 0
    try:
        for number, sample in enumerate(samples, 1):
            yield _read_sample(number, sample)
    except (ValueError, TypeError, OSError, LookupError, RuntimeError, AssertionError) as error:
        first = (str(error).splitlines() or [""])[0][:200]
        raise DataError(
            path.name, f"is not a readable Inspect log: {first}", row=number + 1
        ) from error


def _read_sample(number: int, sample: object) -> GivenAnswer:
    from inspect_ai.log import EvalSample

    assert isinstance(sample, EvalSample)
    output, facts = sample.output, sample.metadata or {}
    text = _bound(repair_surrogates(output.completion))
    usage = output.usage
    stop = output.choices[0].stop_reason if output.choices else "none"
    failure = sample.error.message if sample.error else output.error or ""
    if stop == "none":
        failure = failure or "the log has no output"
    return GivenAnswer(
        number,
        Reply(
            text,
            reasoning=_read_thought(output),
            refusal=(text or "content filter") if stop == "content_filter" else "",
            finish="length" if stop == "max_tokens" else "",
            tokens_in=usage.input_tokens if usage else 0,
            tokens_out=usage.output_tokens if usage else 0,
        ),
        id=str(sample.id),
        image=_find(facts, ("image_id", "image", "meme")),
        question=_find(facts, ("question",)),
        failure=repair_surrogates(failure)[:300],
        epoch=sample.epoch,
    )


def _read_thought(output: ModelOutput) -> str:
    """Return the parts of an answer that the provider marks as reasoning."""
    content = output.choices[0].message.content if output.choices else ""
    parts = [] if isinstance(content, str) else content
    said = (part.reasoning for part in parts if part.type == "reasoning" and not part.redacted)
    return _bound(repair_surrogates("\n".join(said)))


def _find(facts: Mapping[str, object], names: Sequence[str]) -> str:
    return next((str(facts[name]) for name in names if isinstance(facts.get(name), str | int)), "")
