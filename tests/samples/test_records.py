"""The records of the sample data keep every rule of docs/reference/sample-data.md."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from memantics.core import images
from memantics.core.errors import DataError, UnknownName
from memantics.core.meaning import DIMENSIONS
from memantics.core.samples import (
    IMAGES,
    MEMES_FILE,
    SampleMeme,
    image_path,
    parse_memes,
    read_samples,
)
from tests.places import ROOT

MEMES = read_samples()
BY_ID = {meme.id: meme for meme in MEMES}
NONE = "None of the others"
PAIRS = {"sad": "happy", "angry": "calm", "tense": "relaxed", "bored": "excited"}
each = pytest.mark.parametrize("meme", MEMES, ids=lambda meme: meme.id)


def count(language: str, **facts: object) -> int:
    chosen = (m for m in MEMES if m.language == language)
    return sum(all(getattr(m, k) == v for k, v in facts.items()) for m in chosen)


def test_the_pack_is_as_large_as_promised() -> None:
    assert len(BY_ID) == len(MEMES) >= 66
    assert count("en") >= 32
    assert count("zh") >= 34
    assert sum(m.language == "en" and m.panels > 1 for m in MEMES) >= 10
    assert sum(m.language == "zh" and m.panels > 1 for m in MEMES) >= 2
    assert sum(m.emotion is not None for m in MEMES) >= 24
    assert len({m.pun.group for m in MEMES if m.pun and m.pun.group}) >= 9
    assert {m.harm.type for m in MEMES} == {"none", "targeted", "offence", "dispirited"}


def test_images_and_fonts_are_small() -> None:
    fonts = (ROOT / "sample" / "fonts").glob("*.?tf")
    sizes = [path.stat().st_size for path in (*IMAGES.iterdir(), *fonts)]
    assert sum(sizes) < 12 * 1024 * 1024
    assert {path.name for path in IMAGES.iterdir()} == {meme.file for meme in MEMES}


@each
def test_the_image_decodes_within_bounds(meme: SampleMeme) -> None:
    path = image_path(meme.id)
    assert path.stat().st_size <= 60 * 1024
    picture = images.load(path)
    assert max(picture.size) <= 800
    assert picture.width >= 640
    assert len(picture.getcolors(1 << 20) or ()) >= 16


@each
def test_names_and_texts_agree(meme: SampleMeme) -> None:
    pattern = (
        r"en-\d{3}" if meme.language == "en" else r"zh-\d{3}|CN9\d{4}(\.similar_(image|text))?"
    )
    assert re.fullmatch(pattern, meme.id)
    assert meme.file == f"{meme.id}.png"
    assert meme.text == " ".join(caption.text for caption in meme.captions)
    assert meme.captions
    assert all(0 <= caption.panel < meme.panels for caption in meme.captions)
    chinese = re.search(r"[\u4e00-\u9fff]", meme.text + meme.description + meme.meaning)
    assert bool(chinese) == (meme.language == "zh")
    assert len(meme.explanation.splitlines()) == 2


@each
def test_the_knowledge_base_is_whole(meme: SampleMeme) -> None:
    names = [f"{k.dimension}/{k.name}" for k in meme.knowledge]
    assert len(set(names)) == len(names)
    assert len({k.name for k in meme.knowledge}) == len(names), "questions cite bare names"
    assert {k.dimension for k in meme.knowledge} >= set(DIMENSIONS[:8])
    assert all(re.fullmatch(r"[a-z][a-z0-9_]*", k.name) for k in meme.knowledge)
    targets = {r.target for k in meme.knowledge for r in k.relations}
    assert targets <= set(names)
    toxic = any(k.dimension == "Toxicity" for k in meme.knowledge)
    assert toxic == meme.harm.harmful
    if meme.harm.type == "targeted":
        assert any(k.dimension == "TargetCommunity" for k in meme.knowledge)


@each
def test_the_questions_can_be_answered(meme: SampleMeme) -> None:
    first, second = meme.questions
    assert first.dimension == "Toxicity"
    assert second.dimension != "Toxicity"
    names = {f"{k.dimension}/{k.name}" for k in meme.knowledge}
    for question in meme.questions:
        assert len(set(question.options)) == 4
        assert question.options.count(NONE) == 1
        assert 0 <= question.answer < 4
        assert set(question.related) <= names
        assert question.explanation


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_questions_give_nothing_away(language: str) -> None:
    asked = [q for m in MEMES if m.language == language for q in m.questions]
    keys = [q.options[q.answer] for q in asked]
    assert 1 / 8 <= keys.count(NONE) / len(keys) <= 1 / 4
    places = Counter(q.answer for q in asked)
    assert max(places.values()) / len(asked) < 0.34
    plain = [q for q in asked if q.options[q.answer] != NONE]
    longest = [
        all(
            len(q.options[q.answer]) > len(o)
            for o in q.options
            if o not in (q.options[q.answer], NONE)
        )
        for q in plain
    ]
    assert 0.2 <= sum(longest) / len(plain) <= 0.45
    assert {q.dimension for q in asked} == set(DIMENSIONS)


@each
def test_intents_background_and_harm(meme: SampleMeme) -> None:
    assert 1 <= len(meme.intents) <= 3
    assert all(i.startswith("the meme ") and not i.endswith(".") for i in meme.intents)
    assert len(meme.background) <= 3
    harm = meme.harm
    assert harm.harmful == (harm.type != "none")
    assert harm.harmful == (harm.text or harm.image or harm.fusion)
    assert not (harm.fusion and (harm.text or harm.image))
    assert (harm.target > 0) == (harm.type == "targeted")
    assert 0 <= harm.target <= 15


@each
def test_emotions_and_sentiment(meme: SampleMeme) -> None:
    if meme.emotion:
        assert PAIRS[meme.emotion.source] == meme.emotion.target
        assert (meme.emotion.layout == "SinglePanel") == (meme.panels == 1)
        assert meme.emotion.rewritten not in ("", meme.text)
        assert meme.emotion.plan
    label = f"{meme.sentiment.target}-{meme.sentiment.type}"
    votes = Counter(meme.sentiment.votes)
    assert votes.most_common(1)[0] == (label, votes[label])
    assert votes[label] >= 2 or len(votes) == 3


@each
def test_puns_and_chats(meme: SampleMeme) -> None:
    pun = meme.pun
    assert (pun is not None and pun.group is not None) == meme.id.startswith("CN")
    if pun is None:
        assert not meme.chats
        return
    assert pun.is_pun == (pun.kind != "none") == (pun.reading is not None) == (pun.role == "pun")
    assert pun.caption in (meme.text, *(caption.text for caption in meme.captions))
    if pun.kind == "homophone":
        assert pun.reading != pun.caption
    if pun.group:
        expected = pun.group + ("" if pun.role == "pun" else f".{pun.role}")
        assert meme.id == expected
        assert bool(meme.chats) == (pun.role == "pun")


@each
def test_chat_options_exist(meme: SampleMeme) -> None:
    assert len({chat.topic for chat in meme.chats}) == len(meme.chats)
    for chat in meme.chats:
        assert 3 <= len(chat.turns) <= 6
        assert all(turn.startswith(("甲：", "乙：")) for turn in chat.turns)
        hard = (chat.hard.text, chat.hard.image, chat.hard.sentiment)
        pools = chat.hard.candidates
        for options in (chat.easy, hard):
            assert len({meme.id, *options}) == 4
            assert all((p := BY_ID[o].pun) and p.is_pun and p.group for o in options)
        assert all(
            p in pool
            for p, pool in zip(hard, (pools.text, pools.image, pools.sentiment), strict=True)
        )
        assert meme.id not in (*pools.text, *pools.image, *pools.sentiment)
        assert BY_ID[chat.hard.sentiment].sentiment.type == meme.sentiment.type


def test_pun_groups_are_complete() -> None:
    groups: dict[str, set[str]] = {}
    for meme in MEMES:
        if meme.pun and meme.pun.group:
            groups.setdefault(meme.pun.group, set()).add(meme.pun.role)
    assert all(roles == {"pun", "similar_image", "similar_text"} for roles in groups.values())


def test_a_damaged_record_is_named() -> None:
    lines = MEMES_FILE.read_bytes().splitlines()
    broken = b"\n".join([lines[0], lines[1].replace(b'"language":', b'"tongue":', 1)])
    with pytest.raises(DataError, match=r"memes\.jsonl: row 2: .*python -m sample_data"):
        parse_memes(broken, "memes.jsonl")


def test_an_unknown_meme_is_refused() -> None:
    with pytest.raises(UnknownName, match="did you mean en-001"):
        image_path("en-0001")
