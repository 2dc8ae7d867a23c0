"""Summary of PunMemeCN's data, and the statistics of its paper recomputed from a copy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path

from pydantic import JsonValue

from memantics.benchmarks.published import read_published
from memantics.benchmarks.punmemecn import examples
from memantics.benchmarks.punmemecn.load import (
    CHATS,
    GLUED_TAG,
    STRAY_STOP,
    TARGETS,
    TOPICS,
    TYPES,
    ChatRecord,
    PunMeme,
    PunRelease,
)
from memantics.core.data import Found, checksum
from memantics.core.releases import META
from memantics.core.text import cut_chinese
from memantics.metrics.classification import ClassCounts, f1
from memantics.metrics.text import measure_distinct

COMPLETE = 1959


def survey(release: PunRelease) -> Found:
    """Summarise a copy of the data: counts, and the effect of missing files."""
    images = sum(meme.image is not None for meme in release.memes)
    return Found(
        records=len(release.memes),
        counts={
            "memes": len(release.memes),
            "puns": sum(meme.is_pun for meme in release.memes),
            "groups": len({meme.group for meme in release.memes}),
            "conversations": len(release.conversations),
            "easy chats": len(release.easy),
            "hard chats": len(release.hard),
        },
        files=tuple(path.name for path in release.files),
        checksum=checksum(release.files, release.folder),
        images_found=images,
        images_expected=len(release.memes),
        skips=release.skips,
        repairs=dict(release.repairs),
        notes=tuple(_notes(release, images)),
        details={
            "chats in the order of the authors, with their orders of options": {
                chat: list(order) for chat, order in examples.authors_orders().items()
            },
            "transcribed puns in the order of the authors": list(examples.draw_transcribed()),
        },
    )


def _notes(release: PunRelease, images: int) -> list[str]:
    notes: list[str] = []
    memes = len(release.memes)
    if memes < COMPLETE:
        notes.append(
            f"This copy has {memes:,} of the {COMPLETE:,} memes of the official "
            "release: statistics will differ from the paper's."
        )
    if images == 0:
        notes.append(
            "This copy contains no images: tasks that need them cannot run; they are "
            "beside _Meta.json in the official repository."
        )
    elif images < memes:
        notes.append(
            f"{memes - images:,} of {memes:,} images are not in this copy: tasks that "
            "need images can only use the others."
        )
    if find_spec("pypinyin") is None or find_spec("jieba") is None:
        notes.append("Pinyin and words are not counted: install 'memantics[offline]'.")
    present = {path.name for path in release.files}
    notes += [
        f"{name} is not in this copy: there are no {level} chats."
        for level, name in CHATS.items()
        if name not in present
    ]
    told = len(release.conversations)
    for level, name in CHATS.items():
        chats = len(release.chats(level)) + sum(skip.file == name for skip in release.skips)
        if name in present and chats < told:
            notes.append(f"{name} has {chats:,} of the {told:,} conversations in {META}.")
    return notes


NOT_RELEASED = ("agreement.punchline", "chats.perplexity", "chats.bertscore")
PUBLISHED = Path(__file__).parent / "expected" / "published.json"


def statistics(release: PunRelease) -> dict[str, JsonValue]:
    """Return every statistic of the paper by key; None if no copy, or not this one, contains it.

    Pinyin and word statistics need the extra ``offline``; they are None without it.
    """
    puns = [meme for meme in release.memes if meme.is_pun]
    return {
        **_sizes(release.memes),
        **_sentiment(puns),
        **_agreement(release.memes, puns),
        **_captions(release.memes, puns),
        **_conversations(release, puns),
        **_distinct(line for talk in release.conversations for line in talk.lines),
        **_options(release),
        **_evaluation(release, puns),
        **dict.fromkeys(NOT_RELEASED),
        "table5.drop.gpt_4o": _published_drop("GPT-4o"),
    }


def _published_drop(system: str) -> float | None:
    """Return the drop computed from the cells of Table 5, to compare with the printed drop."""
    rows = (row for row in read_published(PUBLISHED) if row.task == "harmful")
    cells = next((row.metrics for row in rows if row.system == system), None)
    return round(cells["recall_nonpun"] - cells["recall_toxicn"], 3) if cells else None


def share(part: int, whole: int, digits: int) -> float | None:
    """Return a rounded percentage; None if the total is 0.

    >>> share(1454, 1959, 2), share(0, 0, 1)
    (74.22, None)
    """
    return round(100 * part / whole, digits) if whole else None


def _sizes(memes: Sequence[PunMeme]) -> dict[str, JsonValue]:
    puns = sum(meme.is_pun for meme in memes)
    return {
        "memes.total": len(memes),
        "memes.pun": puns,
        "memes.non_pun": len(memes) - puns,
        "memes.groups": len({meme.group for meme in memes}),
    }


def _sentiment(puns: Sequence[PunMeme]) -> dict[str, JsonValue]:
    targets = Counter(meme.target for meme in puns)
    types = Counter(meme.type for meme in puns)
    both = sum(meme.sentiment == "other-negative" for meme in puns)
    found: dict[str, JsonValue] = {}
    for name in TARGETS:
        found[f"sentiment.target.{name}"] = targets[name]
        found[f"sentiment.target.{name}.share"] = share(targets[name], len(puns), 1)
    for name in TYPES:
        found[f"sentiment.type.{name}"] = types[name]
        found[f"sentiment.type.{name}.share"] = share(types[name], len(puns), 1)
    found["sentiment.other_negative"] = both
    found["sentiment.other_negative.share"] = share(both, len(puns), 2)
    return found


def _agreement(memes: Sequence[PunMeme], puns: Sequence[PunMeme]) -> dict[str, JsonValue]:
    def unanimous(part: Iterable[PunMeme]) -> int:
        return sum(len(set(meme.votes)) == 1 for meme in part)

    def human(matches: Callable[[str, PunMeme], bool]) -> float | None:
        hits = sum(matches(vote, meme) for meme in puns for vote in meme.votes)
        return share(hits, sum(len(meme.votes) for meme in puns), 2)

    split = [meme for meme in memes if len(set(meme.votes)) == len(meme.votes)]
    overruled = 0
    for meme in memes:
        label, times = Counter(meme.votes).most_common(1)[0]
        overruled += times > 1 and label != meme.sentiment
    return {
        "agreement.sentiment.all": share(unanimous(memes), len(memes), 2),
        "agreement.sentiment.all.count": unanimous(memes),
        "agreement.sentiment.pun": share(unanimous(puns), len(puns), 1),
        "human.target": human(lambda vote, meme: vote.partition("-")[0] == meme.target),
        "human.type": human(lambda vote, meme: vote.partition("-")[2] == meme.type),
        "human.overall": human(lambda vote, meme: vote == meme.sentiment),
        "votes.majority.overruled": overruled,
        "votes.three_ways.all": len(split),
        "votes.three_ways.pun": sum(meme.is_pun for meme in split),
    }


def _captions(memes: Sequence[PunMeme], puns: Sequence[PunMeme]) -> dict[str, JsonValue]:
    changed = [(m.caption, m.reading) for m in puns if m.reading and m.reading != m.caption]
    level = [(printed, heard) for printed, heard in changed if len(printed) == len(heard)]
    exact = _count_same_sounds(level)
    readings = {meme.group: meme.reading for meme in puns}
    told = [meme for meme in memes if meme.role == "similar_text"]
    as_pun = Counter(meme.caption for meme in puns)
    as_other = Counter(meme.caption for meme in memes if not meme.is_pun)
    length = sum(len(meme.caption) for meme in puns)
    return {
        "puns.homophone": len(changed),
        "puns.homophone.exact": exact,
        "puns.homophone.fuzzy": None if exact is None else len(level) - exact,
        "puns.homophone.length": len(changed) - len(level),
        "puns.polysemy": len(puns) - len(changed),
        "captions.length.pun": round(length / len(puns), 1) if puns else None,
        "captions.similar_text_is_reading": sum(m.caption == readings.get(m.group) for m in told),
        "captions.pun_and_not": len(as_pun.keys() & as_other.keys()),
        "captions.bound.f1": _best_f1(as_pun, as_other),
    }


def _best_f1(as_pun: Counter[str], as_other: Counter[str]) -> float | None:
    """Return the F1 of the best detector that sees only captions: one answer per caption."""
    mixed = sorted(
        (caption for caption in as_pun if caption in as_other),
        key=lambda caption: as_other[caption] / as_pun[caption],
    )
    hits = as_pun.total() - sum(as_pun[caption] for caption in mixed)
    missed, false = as_pun.total() - hits, 0
    top = f1(ClassCounts(hits, false, missed)) or 0.0
    for caption in mixed:  # in increasing order of the cost of calling a caption a pun
        hits, missed = hits + as_pun[caption], missed - as_pun[caption]
        false += as_other[caption]
        top = max(top, f1(ClassCounts(hits, false, missed)) or 0.0)
    return round(top, 3) if as_pun else None


def _conversations(release: PunRelease, puns: Sequence[PunMeme]) -> dict[str, JsonValue]:
    talks = release.conversations
    told = Counter(talk.meme for talk in talks)
    per_pun = Counter(told[meme.id] for meme in puns)
    lines = Counter(len(talk.lines) for talk in talks)
    topics = Counter(talk.topic for talk in talks)
    return {
        "chats.total": len(talks),
        "chats.per_pun.min": min(per_pun, default=None),
        "chats.per_pun.max": max(per_pun, default=None),
        **{f"chats.per_pun.{n}": per_pun[n] for n in range(6)},
        "chats.turns.max": max(lines, default=None),
        **{f"chats.turns.{n}": lines[n] for n in (4, 5, 6)},
        **{f"chats.topic.{topic}": topics[topic] for topic in TOPICS},
        "chats.slips.glued_tag": release.repairs.get(f"{META}: {GLUED_TAG}", 0),
        "chats.slips.stray_stop": release.repairs.get(f"{META}: {STRAY_STOP}", 0),
    }


def _count_same_sounds(pairs: Sequence[tuple[str, str]]) -> int | None:
    """Count pairs of texts that sound alike without tones; None without the extra ``offline``."""
    if find_spec("pypinyin") is None:
        return None
    from pypinyin import lazy_pinyin  # imported on first use

    return sum(lazy_pinyin(printed) == lazy_pinyin(heard) for printed, heard in pairs)


def _distinct(lines: Iterable[str]) -> dict[str, JsonValue]:
    """Return Distinct-1 and -2 (different n-grams over all n-grams) within released chat lines."""
    if find_spec("jieba") is None:
        return {"chats.distinct_1": None, "chats.distinct_2": None}
    plain = (line.removeprefix("甲：").removeprefix("乙：") for line in lines)
    found = measure_distinct(plain, cut_chinese)
    return {
        f"chats.distinct_{n}": None if value is None else round(value, 4)
        for n, value in found.items()
    }


def _options(release: PunRelease) -> dict[str, JsonValue]:
    types = {meme.id: meme.type for meme in release.memes}
    easy = {chat.id: chat for chat in release.easy}
    pairs = [(easy[chat.id], chat) for chat in release.hard if chat.id in easy]

    def drawn(chat: ChatRecord) -> bool:
        return all(meme in chat.candidates[kind] for kind, meme in chat.distractors)

    def same_type(chat: ChatRecord) -> bool:
        return types[dict(chat.distractors)["sentiment_sim"]] == types[chat.correct]

    hard = release.hard
    return {
        "chats.easy": len(release.easy) if release.easy else None,
        "chats.hard": len(hard) if hard else None,
        "chats.hard.drawn_from_lists": sum(map(drawn, hard)) if hard else None,
        "chats.hard.same_type": sum(map(same_type, hard)) if hard else None,
        "chats.hard.correct_in_list": (
            sum(any(c.correct in names for names in c.candidates.values()) for c in hard)
            if hard
            else None
        ),
        "chats.levels.different": (
            sum((a.turns, a.correct) != (b.turns, b.correct) for a, b in pairs) if pairs else None
        ),
    }


def _evaluation(release: PunRelease, puns: Sequence[PunMeme]) -> dict[str, JsonValue]:
    kept = [meme for meme in release.memes if meme.group not in examples.DETECTION_EXAMPLES]
    pool = Counter(meme.target for meme in puns if meme.group not in examples.SENTIMENT_EXAMPLES)
    asked = {chat.id for chat in (*release.easy, *release.hard)} - {examples.CHAT_EXAMPLE}
    return {
        "evaluation.detection.pun": sum(meme.is_pun for meme in kept),
        "evaluation.detection.non_pun": sum(not meme.is_pun for meme in kept),
        **{f"evaluation.sentiment.pool.{name}": pool[name] for name in TARGETS},
        "evaluation.sentiment": examples.PER_TARGET * sum(pool[name] > 0 for name in TARGETS),
        "evaluation.chat": len(asked) if asked else None,
    }
