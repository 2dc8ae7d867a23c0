from __future__ import annotations

import sys

import pytest

from memantics.core.errors import MissingExtra
from memantics.understanding.phonetics.english import compare_phonemes, load_vocabulary
from memantics.understanding.phonetics.homophones import read_homophones
from memantics.understanding.phonetics.reading import Settings, explain
from tests.phonetics.captions import ENGLISH_PLAIN, ENGLISH_PUNS

pytest.importorskip("pocketsphinx")


def test_english_puns_are_understood() -> None:
    meant = {c: read_homophones(c).intended for c, _ in ENGLISH_PUNS}
    right = [c for c, t in ENGLISH_PUNS if (m := meant[c]) is not None and m.text == t]
    assert len(right) >= 10, meant


def test_plain_english_stays_quiet() -> None:
    assert [c for c in ENGLISH_PLAIN if read_homophones(c).intended] == []


def test_spans_and_case_are_kept() -> None:
    readings = read_homophones("Lettuce pray!")
    assert readings.language == "en"
    assert readings.readings[0].text == "let us pray!"
    (change,) = readings.readings[0].changes
    assert (change.written, change.homophone, change.distance) == ("Lettuce", "let us", 0.0)
    assert explain(readings)[0].startswith("Lettuce pray!")


def test_unknown_words_and_long_texts_are_noted() -> None:
    assert any("qzxv" in n for n in read_homophones("qzxv qzxv").notes)
    assert read_homophones("the quick brown fox " * 500).notes


def test_without_the_dictionary_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pocketsphinx", None)
    load_vocabulary.cache_clear()
    try:
        readings = read_homophones("lettuce pray")
        assert readings.readings == ()
        assert "memantics[phonetics]" in readings.notes[0]
        with pytest.raises(MissingExtra):
            read_homophones("lettuce pray", settings=Settings(language="en"))
    finally:
        load_vocabulary.cache_clear()


def test_phonemes_compare_both_ways() -> None:
    assert compare_phonemes("S", "Z") == compare_phonemes("Z", "S") < 1
