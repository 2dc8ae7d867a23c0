"""The forms in which models answer, as a table: in both languages, with and without negation."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from memantics.benchmarks.parsing import parse_label, parse_letter
from memantics.benchmarks.punmemecn import detection
from memantics.benchmarks.punmemecn.sentiment import parse_sentiment
from memantics.benchmarks.toxicn_mm.plugin import parse_verdict
from memantics.core.task import Unparsed

TABLE = tomllib.loads(Path(__file__).with_name("forms.toml").read_text(encoding="utf-8"))
OPTIONS = {"A": "一只猫", "B": "a dog", "C": "two fish", "D": "None of the others"}
READERS: dict[str, Callable[[str], str]] = {
    "letters": lambda text: parse_letter(text, OPTIONS),
    "pun": lambda text: parse_label(text, detection.ALIASES, {"pun": "non-pun", "non-pun": "pun"}),
    "harm": parse_verdict,
}


def walk() -> Iterator[tuple[str, str, str]]:
    for kind, rows in TABLE.items():
        for value, forms in rows.items():
            yield from ((kind, form, value) for form in forms)


def test_the_table_is_large() -> None:
    assert len(list(walk())) >= 100


@pytest.mark.parametrize(("kind", "form", "value"), list(walk()))
def test_a_form_is_read_as_a_careful_reader_reads_it(kind: str, form: str, value: str) -> None:
    try:
        found = READERS[kind](form)
    except Unparsed:
        found = "-"
    assert found == value


@pytest.mark.parametrize(
    ("said", "type_"),
    [("负面", "negative"), ("消极", "negative"), ("正面", "positive"), ("中立", "neutral")],
)
def test_sentiments_by_their_other_names(said: str, type_: str) -> None:
    names = {"target": "情感指向对象", "type": "情感类别"}
    reply = f'{{"情感指向对象": "他人", "情感类别": "{said}"}}'
    assert parse_sentiment(reply, names, last=False) == {"target": "other", "type": type_}
