"""Minimal pairs: what templates hold, what is drawn and read back, who is consistent on them."""

from __future__ import annotations

import json
import shutil
import string
from collections import Counter
from pathlib import Path

import pytest

from memantics.actions.pairs import check_pairs
from memantics.build.pairs.wording import (
    PAIR_KINDS,
    SAME,
    PairWords,
    fill_templates,
    read_templates,
    read_words,
)
from memantics.core.errors import DataError, InputError
from memantics.starter import image_path
from tests.commands import Shell

HOLES = {"group", "neutral", "insult", "spelled", "parted"}


def list_holes(text: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(text) if name}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_thirty_templates_of_every_kind(language: str) -> None:
    found = [template for template in read_templates() if template.language == language]
    assert len(found) == 30
    assert {template.kind for template in found} == set(PAIR_KINDS)
    assert min(Counter(template.kind for template in found).values()) >= 3
    assert len({template.id for template in found}) == 30
    for template in found:
        # Every text is about people by a word of the list; no template names a group itself.
        assert "group" in list_holes(template.first)
        assert list_holes(template.first + template.second) <= HOLES
        assert template.first != template.second


def test_few_pairs_are_of_all_kinds_and_say_what_must_hold() -> None:
    pairs = fill_templates("en", read_words()["en"], 14)
    assert Counter(pair.kind for pair in pairs) == dict.fromkeys(PAIR_KINDS, 2)
    for pair in pairs:
        assert pair.labels == ("harmful", "harmful" if pair.kind in SAME else "harmless")
        assert "{" not in pair.first + pair.second


def test_words_of_a_users_own(tmp_path: Path) -> None:
    lists = '[words.en]\ngroups=["a"]\nneutrals=["b"]\ninsults=["c"]\nspelled=["d"]\nparted=["e"]\n'
    path = tmp_path / "words.toml"
    path.write_text(lists, encoding="utf-8")
    words = read_words(path)["en"]
    assert words == PairWords(
        groups=("a",), neutrals=("b",), insults=("c",), spelled=("d",), parted=("e",)
    )
    assert fill_templates("en", words, 1)[0].first == "a are c"
    path.write_text(lists.replace('["d"]', '["d", "d"]'), encoding="utf-8")
    with pytest.raises(DataError, match="differ in number"):
        read_words(path)
    path.write_text(lists.replace("groups", "people"), encoding="utf-8")
    with pytest.raises(DataError, match=r"people|groups"):
        read_words(path)


def test_who_is_asked_must_be_said(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a detector or a run"):
        check_pairs(tmp_path)
    with pytest.raises(InputError, match="holds no pairs"):
        check_pairs(tmp_path, model=tmp_path / "d.zip")


@pytest.mark.slow
def test_pairs_are_drawn_read_back_and_asked(shell: Shell) -> None:
    (shell.folder / "memes").mkdir()
    for name in ("en-001", "en-003"):
        shutil.copy(image_path(name), shell.folder / "memes")
    ran = shell.run("build", "pairs", "memes", "--count", "7", "--language", "en", "--json")
    assert ran.code == 0, ran.err
    built = json.loads(ran.out)
    assert built["pairs"] == 7
    assert built["kinds"] == dict.fromkeys(PAIR_KINDS, 1)
    assert built["read"] >= 0.9
    assert shell.run("data", "add", "pairs", "pairs").code == 0
    ran = shell.run("run", "pairs", "--model", "baseline/majority", "--out", "runs")
    assert ran.code == 0, ran.err
    (facts,) = (shell.folder / "runs").rglob("run.json")
    ran = shell.run("detector", "check", "pairs", "--run", facts.parent, "--json")
    assert ran.code == 0, ran.err
    found = {(row["by"], row["label"]): row for row in json.loads(ran.out)["kinds"]}
    # One answer to everything: where the label must change it never does.
    assert found["target", "the label changes"]["value"] == 0.0
    assert found["spelling", "the label stays"]["value"] == 1.0
    assert found["all", "both are right"]["n"] == 7
