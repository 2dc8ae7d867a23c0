"""Measure how many obfuscated harmful Chinese texts a detector calls harmless.

``python -m research.obfuscations zh [FILE]`` trains the preset ``fast`` on 1,200 texts of ToxiCN
MM, without captions, or loads a detector. Of 2,000 other texts, flagged harmful ones are
obfuscated; harmless ones show the cost in false positives. Homophones, pinyin and emoji change the
two words with the largest effect
on the detector, as an attacker with access to it would. `UNSEEN` were written after the rules.
"""

from __future__ import annotations

import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.obfuscation import add_emoji, space_out, spell_out
from memantics.moderation.robustness import obfuscation as swap_homophones
from memantics.moderation.subjects import Subject
from memantics.moderation.verdict import Verdict, judge
from research.data import read_harm

LEARNT, KEPT, TRIED, TEXTS, CALM = 1200, 2400, 2000, 60, 300
_LONGEST = 40
Obfuscation = Callable[[str, list[str]], str]
KIND = ("今天天气真好。", "祝大家生日快乐。", "谢谢你们的爱。", "我家的小狗最可爱。")
OBFUSCATIONS: dict[str, Obfuscation] = {
    "homophones of two words": swap_homophones,
    "pinyin for two words": lambda text, words: spell_out(text, words, 0),
    "emoji inside two words": lambda text, words: add_emoji(text, words, 0),
    "spaces around and inside two words": lambda text, words: space_out(text, words, 0),
    "spaces between all characters": lambda text, _: " ".join(text),
    "dots between all characters": lambda text, _: ".".join(text),
    "zero-width spaces between all": lambda text, _: "\u200b".join(text),
    "percent-encoded": lambda text, _: "".join(f"%{byte:02x}" for byte in text.encode()),
    "HTML entities": lambda text, _: "".join(f"&#{ord(sign)};" for sign in text),
    "NUL between all characters": lambda text, _: "\0".join(text),
    "strokes": lambda text, _: "".join(f"{sign}\u0336" for sign in text),
    "reversed": lambda text, _: text[::-1],
    "right-to-left override": lambda text, _: f"\u202e{text[::-1]}\u202c",
    "two kind sentences": lambda text, _: f"{KIND[0]}{text}。{KIND[1]}",
    "four kind sentences": lambda text, _: f"{KIND[0]}{KIND[1]}{text}。{KIND[2]}{KIND[3]}",
}


def _scatter(text: str) -> str:
    """Insert kind words without punctuation at random places."""
    draw, pieces = random.Random(text), list(text)
    for word in ("今天天气真好", "生日快乐", "谢谢你们的爱"):
        pieces.insert(draw.randint(0, len(pieces)), word)
    return "".join(pieces)


def _add_marks(text: str) -> str:
    draw = random.Random(text)
    marks = range(0x0300, 0x0334)
    return "".join(sign + "".join(map(chr, draw.choices(marks, k=4))) for sign in text)


def _encode(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


UNSEEN: dict[str, Obfuscation] = {
    "HTML tags between all characters": lambda text, _: "<b></b>".join(text),
    "Zalgo": lambda text, _: _add_marks(text),
    "Unicode tags between all": lambda text, _: "\U000e0061".join(text),
    "each character in brackets": lambda text, _: "".join(f"【{sign}】" for sign in text),
    "a Latin letter between all": lambda text, _: "x".join(text),
    "a digit between all": lambda text, _: "1".join(text),
    "line breaks between all": lambda text, _: "\n".join(text),
    "each character doubled": lambda text, _: "".join(sign * 2 for sign in text),
    "pairs of characters reversed": lambda text, _: "".join(
        text[n : n + 2][::-1] for n in range(0, len(text), 2)
    ),
    "kind words at random places": lambda text, _: _scatter(text),
    "reversed, then dots": lambda text, _: ".".join(text[::-1]),
    "entities, then percent-encoded": lambda text, _: _encode(
        "".join(f"&#x{ord(sign):x};" for sign in text)
    ),
    "emoji between all, then strokes": lambda text, _: "✨".join(f"{c}\u0336" for c in text),
}


def find_telling(detector: Detector, text: str) -> list[str]:
    """Find the two words whose removal lowers the probability of harm most."""
    import jieba

    jieba.setLogLevel("ERROR")
    words = [word for word in dict.fromkeys(jieba.cut(text)) if word.strip()]
    said = detector.machine.predict([Example("", text.replace(word, "")) for word in words])
    chances = {word: one.probability for word, one in zip(words, said, strict=True)}
    return sorted(words, key=lambda word: chances[word])[:2]


def _count(verdicts: list[Verdict], outcome: str) -> int:
    return sum(verdict.outcome == outcome for verdict in verdicts)


def main(chosen: Sequence[str] = ()) -> int:
    """Print one line per obfuscation, and the flagged harmless texts."""
    out = sys.stdout.write
    rows = [row.content for row in read_harm() if 4 <= len(row.content.text.strip()) <= _LONGEST]
    random.Random(1).shuffle(rows)
    bare = [Example(e.id, e.text.strip(), label=e.label, type=e.type) for e in rows]
    detector = Detector.load(chosen[0]) if chosen else Detector.train(bare[:LEARNT], "fast")
    tried = bare[KEPT : KEPT + TRIED]
    point = detector.point
    with_homophones = replace(point, homophones=True)

    def ask(texts: list[str], homophones: bool) -> list[Verdict]:
        subjects = [Subject(Example(str(n), text), "zh") for n, text in enumerate(texts)]
        return judge(detector, subjects, with_homophones if homophones else point)

    said = detector.machine.predict(tried)
    flat = [point.is_harmful(one.probability) for one in said]
    harmless = ask([e.text for e in tried if not e.label], homophones=False)
    reasons = Counter(v.review.partition("(")[0] for v in harmless if v.outcome == "review")
    out(
        f"harmless, {len(harmless)}: {_count(harmless, 'harmful')} flagged by verdict,"
        f" {_count(harmless, 'review')} for human review {dict(reasons.most_common(4))};"
        f" changed {sum(bool(v.obfuscation) for v in harmless)}\n"
    )
    calm = [e.text for e in tried if not e.label][:CALM]
    plain = sum(hit for e, hit in zip(tried, flat, strict=True) if not e.label)
    out(f"harmless: {plain} of {sum(not e.label for e in tried)} flagged as written\n")
    quick, began = ask(calm, homophones=False), time.process_time()
    slow = ask(calm, homophones=True)
    spent = (time.process_time() - began) / len(calm)
    out(
        f"harmless, {len(calm)}: {_count(quick, 'harmful')} flagged, {_count(quick, 'review')} for"
        f" human review; with homophone readings {_count(slow, 'harmful')} and"
        f" {_count(slow, 'review')};"
        f" {sum('homophones' in v.obfuscation for v in slow)} with another reading;"
        f" {1000 * spent:.0f} ms of CPU time per text\n"
    )
    sure = [e.text for e, hit in zip(tried, flat, strict=True) if e.label and hit]
    sure = random.Random(1).sample(sure, min(TEXTS, len(sure)))
    telling = {text: find_telling(detector, text) for text in sure}
    control = [text for text, each in zip(calm, quick, strict=True) if each.outcome == "harmless"]
    telling |= {text: find_telling(detector, text) for text in control[:TEXTS]}
    for title, table in (("known", OBFUSCATIONS), ("unseen generators", UNSEEN)):
        total: Counter[str] = Counter()
        for name, obfuscation in table.items():
            hidden = [obfuscation(text, telling[text]) for text in sure]
            asked = detector.machine.predict([Example("", text) for text in hidden])
            missed = {
                "as typed": sum(not point.is_harmful(one.probability) for one in asked),
                "by verdict": _count(ask(hidden, homophones=False), "harmless"),
            }
            same = ask(
                [obfuscation(text, telling[text]) for text in control[:TEXTS]], homophones=False
            )
            missed["harmless texts that no longer pass"] = TEXTS - _count(same, "harmless")
            if table is OBFUSCATIONS:
                missed["with homophone readings"] = _count(ask(hidden, homophones=True), "harmless")
            total.update(missed)
            out(f"{title}, {name}: {missed}\n")
        out(f"{title}, all of {len(sure) * len(table)}: {dict(total)}\n")
    return 0
