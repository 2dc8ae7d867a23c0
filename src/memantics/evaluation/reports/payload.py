"""Encode items and answers for the item browser of the report page as compact JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import JsonValue

from memantics.core.records import STATUSES, Answer, Field, Image, Item, Message
from memantics.core.rundir import ItemLine, read_answers, read_items
from memantics.evaluation.reports.leaderboard import Board
from memantics.evaluation.reports.runs import Run

T = TypeVar("T", bound=Hashable)
# For each field of an item's form, the key of the correct option, or None.
FindGold = Callable[[Run, Item], tuple[str | None, ...]]
# Values of the main metric for each item, if the task defines them.
FindMarks = Callable[[Run], Mapping[str, float | None]]

# Verdicts in the item browser; page.js uses the same order.
RIGHT, WRONG, INVALID, OPEN = range(4)
_FACET_VALUES = 80
_EARLIER_CHARS = 1_200
_SAFE = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


class AnswerPool(Generic[T]):
    """Distinct values, numbered in the order of first use."""

    def __init__(self) -> None:
        self._places: dict[T, int] = {}

    def add(self, value: T) -> int:
        """Return the number of a value; add the value if it is new."""
        return self._places.setdefault(value, len(self._places))

    @property
    def values(self) -> tuple[T, ...]:
        """All values in the order of their numbers."""
        return tuple(self._places)


@dataclass(frozen=True, slots=True)
class Texts:
    """Distinct texts by number; long texts are shortened with a note."""

    max_chars: int
    pool: AnswerPool[str] = field(default_factory=AnswerPool)

    def add(self, text: str, max_chars: int | None = None) -> int:
        """Return the number of a text; add the text if it is new."""
        limit = max_chars or self.max_chars
        if len(text) > limit:
            text = f"{text[:limit]}\n[… shortened; {len(text):,} characters in the run directory]"
        return self.pool.add(text)


def judge_answer(status: str, value: JsonValue, gold: JsonValue) -> int:
    """Return correct or wrong for an answer with a scalar gold value; else no verdict.

    >>> judge_answer("answered", "B", "B") == RIGHT, judge_answer("answered", 1, True) == WRONG
    (True, True)
    >>> judge_answer("answered", {"to": "self"}, {"to": "other"}) == WRONG
    True
    >>> judge_answer("refused", None, "B") == INVALID, judge_answer("answered", [], {}) == OPEN
    (True, True)
    """
    if status != "answered":
        return INVALID
    parts = list(gold.values()) if isinstance(gold, dict) else [gold]
    if not parts or any(part is None or isinstance(part, dict | list) for part in parts):
        return OPEN
    # In Python 1 == True and 1 == 1.0; as answers, only 1 and 1.0 are equal.
    alike = isinstance(value, bool) == isinstance(gold, bool)
    if isinstance(value, dict) and isinstance(gold, dict):
        alike = [*map(type, value.values())] == [type(gold.get(name)) for name in value]
    return RIGHT if alike and value == gold else WRONG


def asks_ratings(item: Item) -> bool:
    """Whether the task asks for ratings, so that no answer is wrong."""
    return item.form.reply == "json" and any(f.kind == "integer" for f in item.form.fields)


def list_gold_keys(item: Item) -> tuple[str | None, ...]:
    """Return the correct option of each field, if the gold value is the label of an option."""
    golds = item.gold if isinstance(item.gold, dict) else {}
    alone = item.gold if len(item.form.fields) == 1 else None
    return tuple(
        next((o.key for o in f.options if o.key == golds.get(f.name, alone)), None)
        for f in item.form.fields
    )


def show_value(value: JsonValue) -> str:
    """Format a parsed or gold value for display.

    >>> show_value("B"), show_value({"a": [1]}), show_value(None), show_value(["a cat", "a dog"])
    ('B', '{"a": [1]}', '', 'a cat / a dog')
    """
    if value is None:
        return ""
    if isinstance(value, list) and value and all(isinstance(part, str) for part in value):
        return " / ".join(map(str, value))
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def embed_json(value: JsonValue) -> str:
    r"""Encode JSON for a script element, so that its content cannot end the element.

    >>> print(embed_json("</script>"))
    "\u003c/script\u003e"
    """
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for char, code in _SAFE.items():
        text = text.replace(char, code)
    return text


class PayloadMaker:
    """Builds the JSON of one leaderboard for the item browser; leaderboards share images."""

    def __init__(
        self,
        board: Board,
        images: AnswerPool[Path] | None,
        max_chars: int,
        find_gold: FindGold | None = None,
        find_marks: FindMarks | None = None,
    ) -> None:
        self.board = board
        self._find_marks = find_marks or (lambda _: {})
        self._find_gold = find_gold or (lambda _, item: list_gold_keys(item))
        self._images = images
        self._texts = Texts(max_chars)
        self._sheets: AnswerPool[tuple[Field, ...]] = AnswerPool()
        self._prompts: AnswerPool[tuple[Message, ...]] = AnswerPool()
        self._first: dict[str, Item] = {}
        self._answers: dict[str, dict[int, JsonValue]] = {}

    def make(self) -> JsonValue:
        """Read every run of the leaderboard and align their answers by item."""
        for place, run in enumerate(self.board.runs):
            attempts, marks = _collect_attempts(run.folder), self._find_marks(run)
            for line in read_items(run.folder):
                first = self._first.setdefault(line.item.id, line.item)
                made = self._make_answer(run, line, first, attempts.get(line.item.id, ()))
                mark = marks.get(line.item.id)
                if mark is not None and made.get("verdict") == OPEN:
                    made["mark"] = f"{run.results.main.replace('_', ' ')} {mark:.3f}"
                self._answers.setdefault(line.item.id, {})[place] = made
        facets = self._make_facets()
        items: list[JsonValue] = [self._make_item(item) for item in self._first.values()]
        return {
            "slug": self.board.slug,
            "statuses": list(STATUSES),
            "warning": " ".join(self.board.warnings),
            "runs": self._make_runs(),
            "facets": facets,
            "items": items,
            "sheets": [self._make_sheet(sheet) for sheet in self._sheets.values],
            "prompts": [self._make_prompt(prompt) for prompt in self._prompts.values],
            # The texts come last, since the parts above add texts.
            "texts": list(self._texts.pool.values),
        }

    def _make_runs(self) -> JsonValue:
        rows = {row.run: row for row in self.board.rows if row.run is not None}
        return [
            {
                "name": rows[place].label,
                "note": rows[place].note,
                "trivial": rows[place].trivial,
            }
            for place in range(len(self.board.runs))
        ]

    def _make_facets(self) -> JsonValue:
        """Select the tags with few distinct values as filters of the item browser."""
        counts: dict[str, Counter[str]] = {}
        for item in self._first.values():
            for name, value in item.tags.items():
                counts.setdefault(name, Counter())[value] += 1
        made: list[JsonValue] = []
        for name, values in counts.items():
            few = len(values) <= _FACET_VALUES and len(values) < max(values.total(), 2)
            if few and len(values) > 1:
                made.append([name, [[value, values[value]] for value in sorted(values)]])
        return made

    def _make_item(self, item: Item) -> JsonValue:
        answers = self._answers[item.id]
        return {
            "id": item.id,
            "group": item.group,
            "question": self._texts.add(item.form.question),
            "context": [[k, self._texts.add(v)] for k, v in item.form.context.items()],
            "sheet": self._sheets.add(item.form.fields),
            **self._show_gold(self.board.runs[next(iter(answers))], item),
            "tags": [[name, value] for name, value in item.tags.items()],
            "images": [self._number(image) for image in item.images],
            "answers": [answers.get(place) for place in range(len(self.board.runs))],
        }

    def _show_gold(self, run: Run, item: Item) -> dict[str, JsonValue]:
        """Return the gold answer of an item and its options; rating tasks have none."""
        if asks_ratings(item):
            return {"gold": None, "keys": []}
        keys: list[JsonValue] = list(self._find_gold(run, item))
        return {"gold": self._texts.add(show_value(item.gold)), "keys": keys}

    def _make_answer(
        self, run: Run, line: ItemLine, first: Item, attempts: Sequence[Answer]
    ) -> dict[str, JsonValue]:
        prompt = self._prompts.add(line.messages)
        if not attempts:
            return {"prompt": prompt}
        *earlier, last = attempts
        made: dict[str, JsonValue] = {
            "prompt": prompt,
            "verdict": judge_answer(
                last.status, last.value, None if asks_ratings(line.item) else line.item.gold
            ),
            "status": STATUSES.index(last.status),
            "attempts": len(attempts),
            "value": self._texts.add(show_value(last.value)),
            "text": self._texts.add(last.reply.text),
            "finish": last.reply.finish,
            "seconds": round(last.seconds, 2),
            "tokens": [last.reply.tokens_in, last.reply.tokens_out],
        }
        for name, text in (("reason", last.reason), ("reasoning", last.reply.reasoning)):
            if text:
                made[name] = self._texts.add(text)
        if earlier:
            made["earlier"] = [
                [
                    STATUSES.index(a.status),
                    self._texts.add(a.reply.text or a.reason, _EARLIER_CHARS),
                ]
                for a in earlier
            ]
        if (line.item.form.fields, line.item.gold) != (first.form.fields, first.gold):
            # Runs with permuted options have their own gold key.
            made["sheet"] = self._sheets.add(line.item.form.fields)
            made |= self._show_gold(run, line.item)
        return made

    def _make_sheet(self, sheet: Sequence[Field]) -> JsonValue:
        return [
            {
                "name": f.name,
                "kind": f.kind,
                "range": [f.low, f.high] if f.kind == "integer" else None,
                "options": [
                    [o.key, self._texts.add(o.text), self._number(o.image) if o.image else None]
                    for o in f.options
                ],
            }
            for f in sheet
        ]

    def _make_prompt(self, messages: Sequence[Message]) -> JsonValue:
        return [
            [
                m.role,
                [[p.path.name] if isinstance(p, Image) else self._texts.add(p) for p in m.parts],
            ]
            for m in messages
        ]

    def _number(self, image: Image) -> JsonValue:
        """Return the image's number, or its name if images are not embedded."""
        return image.path.name if self._images is None else self._images.add(image.path)


def _collect_attempts(folder: Path) -> Mapping[str, Sequence[Answer]]:
    """Return each item's answers in order; a repeated attempt replaces the earlier one."""
    found: dict[str, dict[int, Answer]] = {}
    for answer in read_answers(folder):
        known = found.setdefault(answer.item, {})
        known.pop(answer.attempt, None)
        known[answer.attempt] = answer
    return {item: list(known.values()) for item, known in found.items()}
