"""Messages of reappraisals: both languages have the same placeholders, and texts are translated."""

from __future__ import annotations

import re

import pytest

from memantics.core.data import toml_beside
from memantics.understanding.reappraisal import messages

TEXTS = toml_beside(messages.__file__, "messages.toml")


@pytest.mark.parametrize("name", TEXTS)
def test_every_message_is_translated(name: str) -> None:
    slots = re.findall(r"\{(\w+)\}", TEXTS[name]["en"])
    assert set(re.findall(r"\{(\w+)\}", TEXTS[name]["zh"])) <= set(slots)
    english = messages.say(name, **dict.fromkeys(slots, "7"))
    chinese = messages.translate(english, "zh")
    assert chinese == TEXTS[name]["zh"].format(**dict.fromkeys(slots, "7"))
    assert messages.translate(english, "en") == english


def test_other_texts_stay() -> None:
    assert messages.translate("the server is down", "zh") == "the server is down"


@pytest.mark.parametrize("name", [name for name, texts in TEXTS.items() if "page" in texts])
def test_advice_on_a_page_names_no_commands_and_files(name: str) -> None:
    english = messages.say(name)
    told = messages.translate(english, "en", page=True)
    assert told == TEXTS[name]["page"] != english
    assert not any(part in told for part in ("--", ".json", ".png"))
    assert messages.translate(english, "zh", page=True) == TEXTS[name]["zh"]


def test_messages_without_a_text_for_pages_stay() -> None:
    assert messages.translate("4 panels became 3", "en", page=True) == "4 panels became 3"
