"""The M-QUEST plugin: task ``qa`` (four-way questions on ten dimensions) and label sources."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import groupby
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks import factories
from memantics.benchmarks.mquest import statistics as audit
from memantics.benchmarks.mquest.load import MquestRelease, QaRecord, open_release
from memantics.benchmarks.mquest.statistics import statistics, survey
from memantics.benchmarks.parsing import find_function, parse_file, parse_letter, read_text
from memantics.benchmarks.plugin import AuditHooks, BenchmarkPlugin, TaskSetup
from memantics.core.data import Source, open_once
from memantics.core.errors import DataError, InputError
from memantics.core.labels import LabelledMeme, LabelSource
from memantics.core.prompt import Prompt
from memantics.core.records import Form, Item, Outcome, Score
from memantics.core.task import Task, Unparsed
from memantics.metrics.classification import accuracy_by, group_hits, macro, macro_interval

TOXICITY = "Toxicity"


def make(setup: TaskSetup) -> Task:
    """Build the task ``qa``."""
    prompts = factories.Prompts(setup.prompts[setup.options["order"]], setup.prompts["again"])

    def parse(text: str, form: Form) -> JsonValue:
        return _parse(text, form, setup.options)

    task = factories.choice_task(
        setup, lambda: _items(setup), prompts=prompts, parse=parse, score=score
    )
    return replace(task, kinds=("dimension",))


@dataclass(frozen=True, slots=True)
class _Opened:
    """A split: its most frequent answer, and the toxicity question of each meme."""

    release: MquestRelease
    majority: str | None
    toxic: Mapping[str, str]

    def find_pair(self, question: QaRecord, split: str) -> str:
        """Return the toxicity question whose reason another question asks for; empty if unknown.

        A question file may name its toxicity question. In the evaluated list, all other questions
        of a meme ask for such a reason. Elsewhere, the knowledge base gives the dimension of the
        toxic element.
        """
        if question.pair or question.dimension == TOXICITY:
            return question.pair
        known = split == "toxmquest350" or question.dimension in (
            self.release.toxic_dimensions.get(question.meme, ())
        )
        return self.toxic.get(question.meme, "") if known else ""


@cache
def _open(source: Source, split: str) -> _Opened:
    """Read the release once; cached, since items are iterated several times."""
    release = open_once(open_release, source)
    keys: list[str] = []
    toxic: dict[str, str] = {}
    for record in release.questions(split):
        if record.answer is not None:
            keys.append(factories.LETTERS[record.answer])
            if record.dimension == TOXICITY:
                toxic.setdefault(record.meme, record.id)
    return _Opened(release, factories.most_frequent(keys), toxic)


def _items(setup: TaskSetup) -> Iterator[Item]:
    opened = _open(setup.need_source(), setup.split)
    for question in opened.release.questions(setup.split):
        if question.answer is None:
            continue
        picture = setup.picture(question.image, question.meme)
        if picture is not None:
            pair = opened.find_pair(question, setup.split)
            yield Item(
                id=question.id,
                group=question.meme,
                gold=factories.LETTERS[question.answer],
                form=Form(
                    question.question, (factories.letter_field(question.options, opened.majority),)
                ),
                images=(picture,),
                tags={
                    "dimension": question.dimension,
                    "kind": "T" if question.dimension == TOXICITY else "R",
                    **({"pair": pair} if pair else {}),
                },
            )


def _parse(text: str, form: Form, options: Mapping[str, str]) -> JsonValue:
    known = {option.key: option.text for option in form.fields[0].options}
    if options["parser"] == "paper":
        return parse_as_published(text)
    return parse_letter(text, known, "first" if options["order"] == "answer_first" else "last")


@cache
def _published_patterns() -> tuple[re.Pattern[str], ...]:
    return tuple(
        re.compile(pattern)
        for pattern in (
            r"\b([A-Z])\.",
            r"[Oo]ption\s+([A-Z])\b",
            r"\(([A-Z])\)",
            r"[Aa]nswer:\s*([A-Z])\b",
            r"\b([A-Z])\s*$",
        )
    )


def parse_as_published(text: str) -> str:
    """Apply the official parser: five patterns in turn; the last match of the first that matches.

    Any capital letter counts as an answer, even the one in "U.S.". This parser serves the
    comparison with published scores.

    >>> parse_as_published("The U.S. flag. So B. it is")
    'B'
    """
    for pattern in _published_patterns():
        found = pattern.findall(text)
        if found:
            return str(found[-1])
    raise Unparsed("none of the five published patterns matches")


def _group(outcomes: Sequence[Outcome]) -> tuple[list[tuple[bool, str]], str]:
    """Return whether a toxicity question and all its reason questions are correct, per group.

    If no questions are linked, the questions of a meme form one group if it has both types.
    """
    linked = any(outcome.item.tags.get("pair") for outcome in outcomes)
    kept: list[tuple[Outcome, str]] = []
    for outcome in outcomes:
        tags = outcome.item.tags
        name = outcome.item.id if tags["kind"] == "T" else tags.get("pair", "")
        kept += [(outcome, name if linked else outcome.item.group)] if name or not linked else []
    memes = {name: outcome.item.group for outcome, name in kept}
    right = factories.hits([outcome for outcome, _ in kept])
    kinds = [outcome.item.tags["kind"] for outcome, _ in kept]
    found = group_hits(right, [name for _, name in kept], kinds, frozenset("TR"))
    note = (
        "toxicity questions with their linked questions, all answered correctly"
        if linked
        else "memes with a toxicity and a reasoning question, all answered correctly"
    )
    return [(hit, memes[str(name)]) for name, hit in found.items()], note


def score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    """Return accuracy: overall, toxicity (T), reasons (R), groups with both, and per dimension."""
    right = factories.hits(outcomes)
    memes = [o.item.group for o in outcomes]
    dimensions = [o.item.tags["dimension"] for o in outcomes]
    groups, note = _group(outcomes)
    low, high = macro_interval(right, dimensions, memes) or (None, None)
    return (
        factories.proportion_score("accuracy", right, memes),
        *(
            factories.accuracy_score(key, [o for o in outcomes if o.item.tags["kind"] == kind])
            for key, kind in (("toxicity_accuracy", "T"), ("reasoning_accuracy", "R"))
        ),
        factories.proportion_score(
            "group_accuracy",
            [hit for hit, _ in groups],
            [meme for _, meme in groups],
            note=note,
        ),
        Score(
            "macro_accuracy",
            macro(accuracy_by(right, dimensions)),
            len(set(dimensions)),
            low,
            high,
            note="unweighted mean over dimensions; n counts dimensions",
        ),
        *factories.accuracies_by_tag(outcomes, "dimension", sorted(set(dimensions))),
    )


# The authors' prompt is parsed from the inference script in their second repository. The script is
# not executed: only the texts of ``_format_prompt`` are read.

SCRIPTS = ("VLMs_inference.py", "HF_inference/VLMs_inferences.py")
REPOSITORY = "VLMs_meme-inference"
ORDER = "explain_first"
_PLACEHOLDERS = {"question": "$question", "i": "A", "chr(65 + i)": "A", "option": "a"}
# An answer option in the notation of the authors' script, with example letters.
_OPTION = "A. a\n"


def official_prompts(source: Source, options: Mapping[str, str]) -> dict[str, Prompt]:
    """Return the authors' prompt of the task ``qa``, which asks for the reasons first."""
    if options["order"] != ORDER:
        raise InputError(
            f"wording=official has no prompt for order={options['order']}",
            hint=f"use order={ORDER}, or omit wording",
        )
    place = next(filter(Path.is_file, _list_places(source.root)), None)
    if source.kind != "release" or place is None:
        raise DataError(
            source.root,
            f"wording=official needs {SCRIPTS[0]}, in this folder or in {REPOSITORY} beside it",
            hint=f"clone {REPOSITORY} beside the registered release",
        )
    function = find_function(parse_file(place), "_format_prompt")
    text = "".join(_read(function.body)) if function is not None else ""
    prompt = Prompt(ORDER, text)
    if prompt.placeholders != {"question", "options"}:
        raise DataError(place, "does not contain the prompt in the expected form")
    return {ORDER: prompt}


def _list_places(root: Path) -> Iterator[Path]:
    for folder in (root, *root.resolve().parents[:2]):
        for name in SCRIPTS:
            yield folder / name
            yield folder / REPOSITORY / name


def _read(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the parts of the prompt in the authors' script; the loop over options is one part."""
    for one in body:
        if isinstance(one, ast.For):
            if "".join(_read(one.body)) == _OPTION:
                yield "$options\n"
        elif isinstance(one, ast.Assign | ast.AugAssign):
            yield read_text(one.value, _PLACEHOLDERS) or ""


# Labels for classifiers from the knowledge bases; the input is the printed text.

NONE = "none"
# The spelling in the prompts and knowledge bases of the release.
_SPELLINGS = {"mysogynous": "misogynous"}


def _read_toxicity(release: MquestRelease) -> Iterator[LabelledMeme]:
    """Return the toxicity type in a meme's knowledge base; ``none`` if there is none."""
    for meme, listed in groupby(release.individuals("raw"), key=lambda individual: individual.meme):
        members = list(listed)
        text = " ".join(o.description for o in members if o.dimension == "TextualMaterial")
        named = [
            individual.label.strip().casefold()
            for individual in members
            if individual.dimension == "Toxicity"
        ]
        kind = _SPELLINGS.get(named[0], named[0]) if named else NONE
        yield LabelledMeme(meme, text, (kind,))


LABELS: Mapping[str, LabelSource[MquestRelease]] = {
    "toxicity": LabelSource(
        "toxicity type in the knowledge base, or none",
        _read_toxicity,
        topic="toxicity",
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    must_name=audit.must_name,
    official_prompts=official_prompts,
    audit=AuditHooks(
        findings=audit.findings,
        pictures=audit.pictures,
        makers=audit.makers,
        narrow=audit.narrow,
    ),
)
