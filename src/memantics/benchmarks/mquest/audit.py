"""What only M-QUEST's own data can show: where its questions come from."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from memantics.benchmarks.mquest.knowledge import EXTRA_DIMENSIONS
from memantics.benchmarks.mquest.load import MquestRelease
from memantics.core.finding import Finding, FindingWords, Maker, rank
from memantics.core.meaning import DIMENSIONS
from memantics.core.records import Score
from memantics.tasks.factories import share

_WORDS = FindingWords(__file__)
GENERATED = "huggingface_api"
# Parts of the names of individuals that say nothing about a meme.
_NO_NAMES = frozenset({"text", "word", "scene", "instance", "dimension", "image", "visual"})
_INNER_CAPITAL = re.compile("[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class _Asked:
    """One question, as far as an audit cares."""

    meme: str
    dimension: str
    text: str
    grounded: bool
    named: bool


def pictures(release: MquestRelease) -> Iterator[str]:
    """The images of a complete copy."""
    return (f"{meme}.png" for meme in release.memes)


def makers(release: MquestRelease) -> tuple[Maker, ...]:
    """The questions say that a model wrote them; only the paper says which."""
    written = any(
        release.read_question(file).generator == GENERATED for file in release.files[:100]
    )
    maker = Maker("questions", "Qwen3-VL-8B-Instruct", ("qa",), "the paper; the files name none")
    return (maker,) if written else ()


def narrow(release: MquestRelease, split: str) -> MquestRelease:
    """The questions of a split; the knowledge bases stay."""
    return replace(release, files=release.select(split))


def findings(release: MquestRelease) -> tuple[Finding, ...]:
    """Ungrounded questions, class names in questions, and questions asked of many memes."""
    asked = list(_read(release))
    if not asked:
        return ()
    return (_judge_grounds(asked), _judge_names(asked), _judge_repeats(asked))


def _read(release: MquestRelease) -> Iterator[_Asked]:
    for file in release.files:
        record = release.read_question(file)
        # A class name with an inner capital cannot stand in a question by chance.
        named = bool(_INNER_CAPITAL.search(file.declared)) and file.declared in record.question
        yield _Asked(record.meme, record.dimension, record.question, bool(record.related), named)


def _judge_grounds(asked: Sequence[_Asked]) -> Finding:
    count = sum(not question.grounded for question in asked)
    rows = [
        _share(part, lambda question: not question.grounded, "dimension", name)
        for name in (*DIMENSIONS, *EXTRA_DIMENSIONS)
        if (part := [question for question in asked if question.dimension == name])
    ]
    figure = _share(asked, lambda question: not question.grounded)
    verdict = rank(count > 0, broken=count >= 0.2 * len(asked))
    values = {"count": count, "questions": len(asked)}
    return _WORDS.find("mquest.ungrounded", figure, verdict, values, rows=tuple(rows))


def _judge_names(asked: Sequence[_Asked]) -> Finding:
    bare = [question for question in asked if not question.grounded]
    grounded = [question for question in asked if question.grounded]
    counted = bare or asked
    figure = _share(counted, lambda question: question.named)
    count = sum(question.named for question in counted)
    example = Counter(question.text for question in counted if question.named).most_common(1)
    return _WORDS.find(
        "mquest.class_names",
        figure,
        rank(count > 0, broken=(figure.value or 0) >= 0.1),
        {"count": count, "questions": len(counted)},
        rows=tuple(
            _share(part, lambda question: question.named, "questions", name)
            for name, part in (("ungrounded", bare), ("grounded", grounded))
            if part
        ),
        details=tuple(f"asked {n} times: {text}" for text, n in example),
    )


def _judge_repeats(asked: Sequence[_Asked]) -> Finding:
    memes: dict[str, set[str]] = {}
    for question in asked:
        memes.setdefault(question.text, set()).add(question.meme)
    figure = _share(asked, lambda question: len(memes[question.text]) > 1)
    text, most = max(memes.items(), key=lambda pair: (len(pair[1]), pair[0]))
    details = (f"asked of {len(most)} memes: {text}",) if len(most) > 1 else ()
    many = rank((figure.value or 0) >= 0.2)
    return _WORDS.find("mquest.repeated", figure, many, details=details)


def _share(
    asked: Sequence[_Asked], test: Callable[[_Asked], bool], by: str = "", label: str = ""
) -> Score:
    memes = [question.meme for question in asked]
    return share("share", [test(question) for question in asked], memes, by, label)


def must_name(release: MquestRelease) -> dict[str, list[frozenset[str]]]:
    """By question that cites elements: their words, of which a chain names at least one."""
    found: dict[str, list[frozenset[str]]] = {}
    for record in release.questions("all"):
        words = {
            w for name in record.related for w in re.findall(r"[A-Z]?[a-z]+", name) if len(w) > 3
        }
        if words - _NO_NAMES:
            found[record.id] = [frozenset(words - _NO_NAMES)]
    return found
