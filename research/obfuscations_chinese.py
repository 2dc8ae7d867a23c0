"""Measure how many obfuscated harmful Chinese texts a detector calls harmless.

``python -m research.obfuscations zh`` trains the preset ``fast`` on 2,400 texts of ToxiCN MM,
without captions. Of 2,000 other texts, flagged harmful ones are obfuscated; harmless ones show the
cost in false positives. Homophones, pinyin and emoji change the two words with the largest effect
on the detector, as an attacker with access to it would.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import replace

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.obfuscation import add_emoji, space_out, spell_out
from memantics.moderation.robustness import obfuscation as swap_homophones
from memantics.moderation.subjects import Subject
from memantics.moderation.verdict import Verdict, judge
from research.data import read_harm

LEARNT, TRIED, TEXTS, CALM = 2400, 2000, 150, 300
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
    "two kind sentences": lambda text, _: f"{KIND[0]}{text}。{KIND[1]}",
    "four kind sentences": lambda text, _: f"{KIND[0]}{KIND[1]}{text}。{KIND[2]}{KIND[3]}",
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


def main() -> int:
    """Print one line per obfuscation, and the flagged harmless texts."""
    out = sys.stdout.write
    rows = [row.content for row in read_harm() if 4 <= len(row.content.text.strip()) <= _LONGEST]
    random.Random(1).shuffle(rows)
    bare = [Example(e.id, e.text.strip(), label=e.label, type=e.type) for e in rows]
    detector = Detector.train(bare[:LEARNT], "fast")
    tried = bare[LEARNT : LEARNT + TRIED]
    point = detector.point
    with_homophones = replace(point, homophones=True)

    def ask(texts: list[str], homophones: bool) -> list[Verdict]:
        subjects = [Subject(Example(str(n), text), "zh") for n, text in enumerate(texts)]
        return judge(detector, subjects, with_homophones if homophones else point)

    said = detector.machine.predict(tried)
    flat = [point.is_harmful(one.probability) for one in said]
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
    for name, obfuscation in OBFUSCATIONS.items():
        hidden = [obfuscation(text, telling[text]) for text in sure]
        asked = detector.machine.predict([Example("", text) for text in hidden])
        before = sum(not point.is_harmful(one.probability) for one in asked)
        now, heard = (_count(ask(hidden, homophones), "harmless") for homophones in (False, True))
        out(
            f"{name}: {before} of {len(sure)} missed before, now {now},"
            f" with homophone readings {heard}\n"
        )
    return 0
