"""Control characters in the texts of a data card are rejected, and its YAML is always valid."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml

from memantics.construction.publish.datacard import _quote
from memantics.construction.publish.tables import CardFacts
from memantics.core.errors import InputError

FACTS = CardFacts("mine", "A title: 好", "Two\nlines.", "CC-BY-4.0", ("en",))


@pytest.mark.parametrize("char", ["\x00", "\x07", "\n", "\r", "\x1b", "\x7f", "\x85", "\u2028"])
@pytest.mark.parametrize("name", ["title", "licence", "version"])
def test_a_control_character_is_named(name: str, char: str) -> None:
    FACTS.check()
    facts = replace(FACTS, **{name: f"a{char}b"})  # type: ignore[arg-type]
    with pytest.raises(InputError, match=rf"the {name} contains .* U\+{ord(char):04X}"):
        facts.check()


def test_longer_texts_may_have_lines() -> None:
    replace(FACTS, warning="a\nb", citation="@misc{a,\n}").check()
    with pytest.raises(InputError, match=r"the citation contains .* U\+0000"):
        replace(FACTS, citation="\0").check()


@pytest.mark.parametrize("char", [chr(code) for code in (*range(32), *range(127, 161))])
def test_every_text_is_read_back_from_yaml(char: str) -> None:
    for text in (f"a{char}b: #", f"{char}\u2028\ufeff\uffff好"):
        assert yaml.safe_load(f"title: {_quote(text)}\n") == {"title": text}
