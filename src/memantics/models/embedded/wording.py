"""Short texts: one plain sentence from what was read and how it feels."""

from __future__ import annotations

import re

import numpy as np

from memantics.core.records import Field
from memantics.metrics.rounding import VECTORS, settle
from memantics.models.embedded.choices import weigh
from memantics.models.embedded.evidence import Evidence, Senses
from memantics.models.embedded.lexicon import read_sentences

_LONGEST = {"en": 16, "zh": 40}
_REASON = re.compile(r"rational|reason|explan|justif|why|理由|原因|说明", re.IGNORECASE)
_SOUND = re.compile(r"pinyin|拼音", re.IGNORECASE)
_READ = re.compile(r"^(?:ocr|transcri\w*|文字)$", re.IGNORECASE)
_INTENT = re.compile(r"\bintents?\b|\bauthor\b", re.IGNORECASE)
_KIND, _MOST = 0.4, 24
_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")
_HOMOPHONE = re.compile(r"^(?:homophone|谐音词?)$", re.IGNORECASE)
_PUN_WORD = re.compile(r"^(?:pun_)?word$|^双关词$", re.IGNORECASE)


def write(evidence: Evidence, field: Field, senses: Senses) -> str:
    """What is read or how it is pronounced, where that is asked; else one sentence."""
    said = evidence.said
    asked = f"{field.name} {evidence.form.question}"
    if _SOUND.search(asked):
        return spell(said)
    if _READ.search(field.name) and said.strip():
        return said
    if _HOMOPHONE.search(field.name) or _PUN_WORD.search(field.name):
        hearing = senses.ear.hear(said)
        return hearing.heard if _HOMOPHONE.search(field.name) else hearing.written
    if _REASON.search(field.name) and evidence.texts:
        said = evidence.texts[-1]
    language = "zh" if evidence.form.language == "zh" else "en"
    if not said.strip():
        return str(read_sentences()["speech"][language]["silent"])
    if language == "en" and _INTENT.search(asked):
        deed = "praises" if senses.lexicon.feel(said).valence > _KIND else "mocks"
        return f"the meme {deed} {_find_topic(said, senses)}"
    return _describe(said, language, senses)


def _describe(said: str, language: str, senses: Senses) -> str:
    """One sentence: what kind of thing the meme does, with its first words."""
    mood = senses.lexicon.feel(said)
    valence = weigh(said, senses)
    kind = "rude" if mood.rude else "gloomy" if mood.gloomy else "plain"
    if kind == "plain" and abs(valence) > 0.2:
        kind = "positive" if valence > 0 else "negative"
    phrase = read_sentences()["speech"][language][kind]
    if language == "en":
        return f'{phrase} "{_start(said, language)}"'
    return f"{phrase}“{_start(said, language)}”{_heard(said, senses)}"


def _find_topic(said: str, senses: Senses) -> str:
    """The word that is nearest in meaning to the whole text."""
    found = dict.fromkeys(word.casefold() for word in _WORD.findall(said))
    words: list[str] = [value for value in found if value not in senses.lexicon.function_words]
    if not words:
        return "something"
    rows = senses.encoder.encode([said, *words[:_MOST]])
    return words[int(np.argmax(settle(rows[1:] @ rows[0], VECTORS)))]


def spell(text: str) -> str:
    """Chinese text in pinyin with tone marks, a space between syllables.

    >>> spell("今晚又狮眠了")
    'jīn wǎn yòu shī mián le'
    """
    from pypinyin import Style, lazy_pinyin

    return " ".join(lazy_pinyin(text, style=Style.TONE, errors="ignore"))


def _start(said: str, language: str) -> str:
    words = said.replace('"', "'").split()
    if language == "zh":
        text = "，".join(words)
        return text if len(text) <= _LONGEST["zh"] else text[: _LONGEST["zh"]] + "…"
    return " ".join(words[: _LONGEST["en"]]) + (" …" if len(words) > _LONGEST["en"] else "")


def _heard(said: str, senses: Senses) -> str:
    hearing = senses.ear.hear(said)
    return f"，听起来像“{hearing.meant}”" if hearing.meant else ""
