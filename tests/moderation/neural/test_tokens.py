"""Texts are split as the encoders' own tokenizers do, and as detectors of before learnt them."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memantics.core.errors import DataError
from memantics.moderation.neural.encoding import read_splitter
from memantics.moderation.neural.network import MARKS, describe_word_pieces

pytestmark = pytest.mark.slow

WORDS = [*MARKS, *"天地人猫狗abcdestin0159!?，。#", "cat", "##s", "##ing", "##a", "the", "é"]
VOCABULARY = {word: place for place, word in enumerate(WORDS)}
TEXTS = st.text(
    st.sampled_from(
        "天地人猫狗玉abcdeCATßéŒİ０Ａ019!?，。「#-_'\"  \t\n\r\u200b\u3000\u0301が한😀\ufffd"
    ),
    max_size=30,
)


@pytest.fixture(scope="module")
def official() -> Any:
    tokenizers = pytest.importorskip("tokenizers")
    return tokenizers.Tokenizer.from_str(describe_word_pieces(VOCABULARY).decode())


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_as_the_package_does(official: Any, text: str) -> None:
    own = read_splitter(describe_word_pieces(VOCABULARY), 0)
    assert own.split(text, 200) == official.encode(text).ids


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("猫 Cats ?", ["猫", "cat", "##s", "?"]),
        ("天地人猫狗玉", ["天", "地", "人", "猫", "狗", "[UNK]"]),
        ("the猫cats!?", ["the", "猫", "cat", "##s", "!", "?"]),
        ("É é e\u0301", ["e", "e", "e"]),
        ("ＣＡＴ", ["[UNK]"]),
        ("ca\u200bt\x00s\ud800", ["cat", "##s"]),
        ("猫\u3000狗\t\n人", ["猫", "狗", "人"]),
        ("，。#", ["，", "。", "#"]),
        ("cating" + "a" * 100, ["[UNK]"]),
        ("", []),
    ],
)
def test_what_our_own_splitter_gave_before(text: str, pieces: list[str]) -> None:
    """Detectors were trained on these ids: they must not move with the package."""
    own = read_splitter(describe_word_pieces(VOCABULARY), 0)
    expected = [VOCABULARY[piece] for piece in ["[CLS]", *pieces, "[SEP]"]]
    assert own.split(text, 200) == expected


def test_as_a_tokenizer_that_transformers_saved(tmp_path: Path) -> None:
    transformers: Any = pytest.importorskip("transformers")
    (tmp_path / "vocab.txt").write_text("\n".join(WORDS), encoding="utf-8")
    theirs = transformers.BertTokenizer(str(tmp_path / "vocab.txt"))
    theirs.save_pretrained(tmp_path)
    own = read_splitter((tmp_path / "tokenizer.json").read_bytes(), 0)
    for text in ("The cats eat 猫！", "CATS ÉÉ", "", "玉 cating"):
        assert own.split(text, 64) == theirs(text)["input_ids"]


def test_a_caption_cannot_spell_a_control_mark(official: Any) -> None:
    own = read_splitter(describe_word_pieces(VOCABULARY), 0)
    inner = own.split("猫[SEP]狗[PAD]", 64)[1:-1]
    assert not {VOCABULARY["[SEP]"], VOCABULARY["[PAD]"]} & set(inner)
    assert VOCABULARY["[SEP]"] in official.encode("猫[SEP]狗").ids[1:-1], "the trap is real"


def test_a_long_text_loses_its_end_and_keeps_its_marks() -> None:
    own = read_splitter(describe_word_pieces(VOCABULARY), 0)
    ids = own.split("猫" * 50, 10)
    assert len(ids) == 10
    assert (ids[0], ids[-1]) == (VOCABULARY["[CLS]"], VOCABULARY["[SEP]"])


def test_other_tokenizers_go_through_the_package() -> None:
    tokenizers: Any = importlib.import_module("tokenizers")
    plain = tokenizers.Tokenizer(tokenizers.models.BPE(vocab={"a": 0, "b": 1}, merges=[]))
    plain.add_special_tokens(["<|end|>"])
    plain.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A <|end|>", special_tokens=[("<|end|>", 2)]
    )
    own = read_splitter(plain.to_str().encode(), 0)
    assert own.split("abab", 80) == [0, 1, 0, 1, 2]
    assert own.split("abab", 3) == [0, 1, 2]
    assert own.split("a<|end|>", 80).count(2) == 1, "a caption cannot spell a control mark"
    plain.post_processor = None
    bare = read_splitter(plain.to_str().encode(), 7)
    assert bare.split("", 80) == [7], "nothing to attend to would be no number at all"


@pytest.mark.parametrize("data", [b"", b"[]", b'{"model": 3}', b"\x80"])
def test_what_is_no_tokenizer_is_refused(data: bytes) -> None:
    with pytest.raises(DataError, match=r"is not a valid tokenizer\.json"):
        read_splitter(data, 0)
