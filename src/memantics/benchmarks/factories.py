"""Functions that make tasks from items and prompts: multiple choice, labels, or free text.

By default, the prompt named like the task is filled with ``question``, ``options``, ``names`` and
the item's context. The prompt ``again`` asks again after a reply that cannot be parsed. Replies are
parsed by the tolerant parsers of :mod:`memantics.benchmarks.parsing`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from statistics import fmean

import numpy as np
from pydantic import JsonValue

from memantics.benchmarks.parsing import clean, parse_label, parse_letter, strip_marks
from memantics.benchmarks.plugin import TaskSetup
from memantics.core import records
from memantics.core.prompt import Prompt
from memantics.core.task import Task, Unparsed
from memantics.metrics.classification import accuracy
from memantics.metrics.interval import Span, bootstrap, clustered_wilson, sum_by_cluster

# Options with letters: their format in a prompt, and the correctness of outcomes.

LETTERS = "ABCDEFGHIJ"


def letter_field(options: Sequence[str], majority: str | None = None) -> records.Field:
    """Return a choice field whose options are lettered from A.

    >>> [(o.key, o.text) for o in letter_field(["a cat", "a dog"]).options]
    [('A', 'a cat'), ('B', 'a dog')]
    """
    return records.Field(
        name="answer",
        kind="choice",
        options=tuple(records.Option(LETTERS[i], text) for i, text in enumerate(options)),
        majority=majority,
    )


def list_options(options: Iterable[records.Option]) -> str:
    """Return the options as text, one per line, as models see them.

    >>> print(list_options(letter_field(["a cat", "a dog"]).options))
    A. a cat
    B. a dog
    """
    return "\n".join(f"{option.key}. {option.text}" for option in options)


def most_frequent(values: Iterable[str]) -> str | None:
    """Return the most frequent value; ties go to the first in sorted order.

    >>> most_frequent(["b", "a", "b", "a"])
    'a'
    """
    counted = Counter(values)
    return min(counted, key=lambda value: (-counted[value], value)) if counted else None


def hits(outcomes: Sequence[records.Outcome]) -> list[bool]:
    """Return whether each outcome equals its gold value; an invalid answer never does."""
    return [o.status == "answered" and o.value == o.item.gold for o in outcomes]


Items = Callable[[], Iterator[records.Item]]
Parse = Callable[[str, records.Form], JsonValue]
OutcomeScorer = Callable[[Sequence[records.Outcome]], tuple[records.Score, ...]]
GREEDY = records.Sampling(temperature=0.0)


def choice_task(
    setup: TaskSetup,
    items: Items,
    *,
    prompts: Prompts | None = None,
    parse: Parse | None = None,
    score: OutcomeScorer | None = None,
) -> Task:
    """Return a multiple-choice task; by default it scores accuracy, also by answer position."""
    used = prompts or Prompts.of(setup)
    return setup.make(items, used.ask, parse or read_letter, score or score_choices, used.all)


def label_task(
    setup: TaskSetup,
    items: Items,
    *,
    parse: Parse | Mapping[str, Sequence[str]],
    score: OutcomeScorer,
    prompts: Prompts | None = None,
) -> Task:
    """Return a labelling task; ``parse`` is a reply parser, or maps each label to its names."""
    used = prompts or Prompts.of(setup)

    def read(text: str, form: records.Form) -> JsonValue:
        return parse_label(text, parse) if isinstance(parse, Mapping) else parse(text, form)

    return setup.make(items, used.ask, read, score, used.all)


def text_task(
    setup: TaskSetup,
    items: Items,
    *,
    score: OutcomeScorer,
    parse: Parse | None = None,
    prompts: Prompts | None = None,
) -> Task:
    """Return a free-text task; by default the reply is used unchanged."""
    used = prompts or Prompts.of(setup)
    return setup.make(items, used.ask, parse or read_text, score, used.all)


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a task: images first, given texts, the main prompt, and a retry prompt.

    The prompt ``given`` is filled with the item's context and inserted at the placeholder of that
    name. Each prompt of ``facts`` adds one text of the context before the main prompt.
    """

    main: Prompt
    again: Prompt | None = None
    given: Prompt | None = None
    facts: Mapping[str, Prompt] = field(default_factory=dict)
    sampling: records.Sampling = GREEDY

    @classmethod
    def of(cls, setup: TaskSetup) -> Prompts:
        """Return the prompt named like the task, ``again``, and ``given_NAME`` for a text."""
        found = setup.prompts
        told = {n.removeprefix("given_"): p for n, p in found.items() if n.startswith("given_")}
        return cls(found[setup.card.name], found.get("again"), facts=told)

    @property
    def all(self) -> list[Prompt]:
        """The prompts that are recorded in ``run.json``."""
        return [prompt for prompt in (self.main, self.again, self.given) if prompt] + [
            *self.facts.values()
        ]

    def ask(self, item: records.Item, complaint: str | None) -> records.Request:
        """Return the model request for an item."""
        form = item.form
        options = form.fields[0].options
        values = {
            **form.context,
            "question": form.question,
            "options": list_options(options),
            "names": "\n".join(f"- {option.key}" for option in options),
            "letters": ", ".join(option.key for option in options),
            "keys": ("、" if form.language == "zh" else ", ").join(o.key for o in options),
        }
        if self.given is not None:
            values["given"] = self.given.fill(**form.context)
        told = [(self.facts[n], text) for n, text in form.context.items() if n in self.facts]
        parts = [fact.fill(**dict.fromkeys(fact.placeholders, text)) for fact, text in told]
        parts.append(_fill(self.main, values))
        if complaint is not None and self.again is not None:
            parts.append(_fill(self.again, values | {"complaint": complaint}))
        message = records.Message("user", (*item.images, "\n\n".join(parts)))
        return records.Request((message,), form, self.sampling)


def _fill(prompt: Prompt, values: Mapping[str, str]) -> str:
    return prompt.fill(
        **{
            placeholder: values[placeholder]
            for placeholder in prompt.placeholders
            if placeholder in values
        }
    )


def read_letter(text: str, form: records.Form) -> JsonValue:
    """Return the option letter in a reply, or raise ``Unparsed``."""
    return parse_letter(text, {option.key: option.text for option in form.fields[0].options})


def read_text(text: str, _form: records.Form) -> JsonValue:
    """Return the reply without reasoning and Markdown."""
    body = strip_marks(clean(text))
    if not body:
        raise Unparsed("empty reply")
    return body


def score_choices(outcomes: Sequence[records.Outcome]) -> tuple[records.Score, ...]:
    """Return accuracy overall and by the position of the correct option."""
    places = sorted({str(outcome.item.gold) for outcome in outcomes} | set(LETTERS[:4]))
    return (
        accuracy_score("accuracy", outcomes),
        *accuracies_by(outcomes, "position", places, lambda outcome: str(outcome.item.gold)),
    )


def accuracy_score(
    key: str, outcomes: Sequence[records.Outcome], by: str = "", label: str = "", note: str = ""
) -> records.Score:
    """Return accuracy with a confidence interval clustered by meme."""
    return proportion_score(key, hits(outcomes), [o.item.group for o in outcomes], by, label, note)


def accuracies_by(
    outcomes: Sequence[records.Outcome],
    by: str,
    labels: Sequence[str],
    label_of: Callable[[records.Outcome], str],
) -> Iterator[records.Score]:
    """Return the accuracy of each category, including categories without items."""
    for label in labels:
        part = [outcome for outcome in outcomes if label_of(outcome) == label]
        yield accuracy_score("accuracy", part, by, label)


def accuracies_by_tag(
    outcomes: Sequence[records.Outcome], tag: str, labels: Sequence[str]
) -> Iterator[records.Score]:
    """Return the accuracy of each category that has items; a tag gives the category."""
    rows = accuracies_by(outcomes, tag, labels, lambda outcome: outcome.item.tags.get(tag, ""))
    return (row for row in rows if row.n)


def proportion_score(
    key: str,
    right: Sequence[bool],
    groups: Sequence[str],
    by: str = "",
    label: str = "",
    note: str = "",
) -> records.Score:
    """Return a proportion with its Wilson interval, clustered by group (meme)."""
    span = clustered_wilson(right, groups)
    return spanned(
        records.Score(key, accuracy(right), len(right), None, None, by, label, note), span
    )


def mean_score(
    key: str,
    values: Sequence[float | None],
    groups: Sequence[str],
    by: str = "",
    label: str = "",
    note: str = "",
) -> records.Score:
    """Return a mean with its confidence interval, resampling whole groups; skip None values.

    Values are from 0 to 1; for other scales, :func:`mean_within` takes the bounds.
    """
    row = records.Score(key, None, 0, by=by, label=label, note=note)
    return mean_within(row, values, groups, (0.0, 1.0))


def mean_within(
    row: records.Score,
    values: Sequence[float | None],
    groups: Sequence[str],
    bounds: Span | None,
) -> records.Score:
    """Return a score with the mean of values that lie within bounds, and its confidence interval.

    The interval of equal values depends on the bounds; without bounds (None) they have none.

    >>> row = records.Score("rating", None, 0)
    >>> ones = mean_within(row, [1.0] * 12, list("abcdefghijkl"), (1, 5))
    >>> ones.low, round(ones.high, 2)
    (1.0, 1.97)
    """
    kept = [
        (value, group) for value, group in zip(values, groups, strict=True) if value is not None
    ]
    if not kept:
        return row
    rows = np.array([(value, 1.0) for value, _ in kept])
    sums = sum_by_cluster(rows, [group for _, group in kept])
    span = bootstrap(sums, lambda drawn: drawn[:, 0] / drawn[:, 1], bounds=bounds)
    mean = fmean(value for value, _ in kept)
    return spanned(replace(row, value=mean, n=len(kept)), span)


def spanned(score: records.Score, span: tuple[float, float] | None) -> records.Score:
    """Return a score with its confidence interval, if there is one."""
    low, high = span or (None, None)
    return replace(score, low=low, high=high)
