"""Measure how many obfuscated harmful texts an English detector calls harmless.

``python -m research.obfuscations [zh] [FILE]`` trains a detector on a quarter of Hateful Memes, or
loads it from FILE. Harmful texts of the other half that it flags are obfuscated; harmless texts
show the effect on the false positive rate. "As typed" scores the text without any rule.

Harmless texts that pass are obfuscated too. If they no longer pass, the row shows that the
detector stops the disguise itself, not that it finds harm under it.

`OBFUSCATIONS` were known to the authors of the rules. `UNSEEN` were written after commit 82c78f5c,
which has the rules; the rules were not changed after the measurement.
"""

from __future__ import annotations

import random
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.moderation.verdict import Verdict
from research import obfuscations_chinese
from research.language import divide
from research.obfuscations_third import THIRD

TEXTS = 60
KIND = (
    "have a lovely day everyone.",
    "what a beautiful morning with friends and family.",
    "thank you so much for all the love.",
    "my dog is the cutest little puppy.",
    "happy birthday to the best mom in the world.",
    "i love pizza and sunny weekends.",
)
_CYRILLIC = str.maketrans("aeopcyxi", "аеорсухі")
_LEET = str.maketrans("aeios", "43105")
_SMALL = str.maketrans("abcdefghijklmnoprtuvwyz", "ᴀʙᴄᴅᴇꜰɢʜɪᴊᴋʟᴍɴᴏᴘʀᴛᴜᴠᴡʏᴢ")
_MARKS = tuple(map(chr, range(0x0300, 0x0334)))
Draw = random.Random
Generator = Callable[[str, Draw], str]


def _each(words: str, change: Callable[[str], str], draw: Draw, share: float = 0.6) -> str:
    """Change a random part of the words with four letters or more."""
    return " ".join(
        change(word) if len(word) >= 4 and draw.random() < share else word for word in words.split()
    )


def _insert(mark: str) -> Generator:
    def put(text: str, draw: Draw) -> str:
        def change(word: str) -> str:
            place = draw.randrange(1, len(word))
            return word[:place] + mark + word[place:]

        return _each(text, change, draw)

    return put


def _pad(count: int) -> Generator:
    def put(text: str, draw: Draw) -> str:
        chosen = draw.sample(KIND, count)
        return " ".join([*chosen[: count // 2], text.rstrip(".!? ") + ".", *chosen[count // 2 :]])

    return put


def encode(text: str) -> str:
    """Write each byte of a text in percent-encoding."""
    return "".join(f"%{byte:02x}" for byte in text.encode())


def write_entities(text: str) -> str:
    """Write each character of a text as an HTML entity."""
    return "".join(f"&#{ord(sign)};" for sign in text)


def add_zalgo(text: str, draw: Draw) -> str:
    """Put two to six combining marks over each letter."""
    return "".join(
        sign + "".join(draw.choices(_MARKS, k=draw.randint(2, 6))) if sign.isalpha() else sign
        for sign in text
    )


def scatter(pieces: list[str], kind: list[str], draw: Draw) -> list[str]:
    """Insert the kind words at random places, one by one."""
    for word in kind:
        pieces.insert(draw.randint(0, len(pieces)), word)
    return pieces


def _compose(*names: str) -> Generator:
    def put(text: str, draw: Draw) -> str:
        for name in names:
            text = OBFUSCATIONS[name](text, draw)
        return text

    return put


def _swap_inside(word: str) -> str:
    return word[0] + word[2] + word[1] + word[3:]


def _style(word: str) -> str:
    """Write a word in the mathematical letters of Fraktur, with a gap after each letter."""
    return " ".join(
        chr(0x1D586 + ord(sign) - ord("a")) if "a" <= sign <= "z" else sign for sign in word
    )


OBFUSCATIONS: dict[str, Generator] = {
    "zero-width space": _insert("\u200b"),
    "zero-width joiner": _insert("\u200d"),
    "soft hyphen": _insert("\u00ad"),
    "dot inside": _insert("."),
    "dots between letters": lambda text, draw: _each(text, ".".join, draw),
    "spaces between letters": lambda text, draw: _each(text, " ".join, draw),
    "full width": lambda text, draw: _each(
        text,
        lambda word: "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in word),
        draw,
    ),
    "percent-encoded": lambda text, draw: _each(text, encode, draw),
    "one letter percent-encoded": lambda text, draw: _each(
        text, lambda word: word[0] + encode(word[1]) + word[2:], draw
    ),
    "HTML entities": lambda text, draw: _each(text, write_entities, draw),
    "HTML entities, twice": lambda text, draw: _each(
        text, lambda word: write_entities(word).replace("&", "&amp;"), draw
    ),
    "NUL between letters": lambda text, draw: _each(text, "\0".join, draw),
    "reversed": lambda text, _: text[::-1],
    "words reversed": lambda text, draw: _each(text, lambda word: word[::-1], draw),
    "right-to-left override": lambda text, _: f"\u202e{text[::-1]}\u202c",
    "number sign inside": _insert("#"),
    "number signs between all": lambda text, _: "#".join(text),
    "Cyrillic homoglyphs": lambda text, draw: _each(
        text, lambda word: word.translate(_CYRILLIC), draw
    ),
    "strokes": lambda text, draw: _each(
        text, lambda word: "".join(f"{c}\u0336" for c in word), draw
    ),
    "digits for letters": lambda text, draw: _each(text, lambda word: word.translate(_LEET), draw),
    "two kind sentences": _pad(2),
    "six kind sentences": _pad(6),
}
UNSEEN: dict[str, Generator] = {
    "HTML tags inside words": _insert("<b></b>"),
    "each letter in an HTML tag": lambda text, draw: _each(
        text, lambda word: "".join(f"<i>{sign}</i>" for sign in word), draw
    ),
    "Zalgo": add_zalgo,
    "Unicode tags inside words": _insert("\U000e0061\U000e007f"),
    "mathematical letters with gaps": lambda text, draw: _each(text, _style, draw),
    "small capitals": lambda text, draw: _each(text, lambda word: word.translate(_SMALL), draw),
    "squared letters": lambda text, draw: _each(
        text,
        lambda word: "".join(
            chr(0x1F170 + ord(sign) - ord("a")) if "a" <= sign <= "z" else sign for sign in word
        ),
        draw,
    ),
    "pairs of letters apart": lambda text, draw: _each(
        text, lambda word: " ".join(word[n : n + 2] for n in range(0, len(word), 2)), draw
    ),
    "two inner letters swapped": lambda text, draw: _each(text, _swap_inside, draw),
    "vowels doubled": lambda text, draw: _each(
        text, lambda word: "".join(sign * (1 + (sign in "aeiou")) for sign in word), draw
    ),
    "asterisk for a vowel": lambda text, draw: _each(
        text, lambda word: word[0] + "".join("*" if c in "aeiou" else c for c in word[1:]), draw
    ),
    "kind words at random places": lambda text, draw: " ".join(
        scatter(text.split(), " ".join(KIND[:3]).replace(".", "").split(), draw)
    ),
    "reversed, then dots": lambda text, _: ".".join(text[::-1]),
    "entities, then percent-encoded": lambda text, draw: _each(
        text, lambda word: encode(write_entities(word)), draw
    ),
    "digits, then a dot inside": _compose("digits for letters", "dot inside"),
    "homoglyphs, then strokes": _compose("Cyrillic homoglyphs", "strokes"),
    "words reversed, then zero-width": _compose("words reversed", "zero-width space"),
}


def is_missed(verdict: Verdict) -> bool:
    """Tell whether a verdict is harmless."""
    return verdict.outcome == "harmless"


def main() -> int:
    """Print one line per obfuscation, and one for texts without obfuscation."""
    chosen = sys.argv[1:]
    if chosen[:1] == ["zh"]:
        return obfuscations_chinese.main(chosen[1:])
    out = sys.stdout.write
    looked, unseen = divide()
    random.Random(7).shuffle(looked)
    half = looked[: len(looked) // 2]
    judge = Detector.load(Path(chosen[0])) if chosen else Detector.train(half, "words")
    point = judge.point
    said = judge.machine.predict(unseen)
    flat = [point.is_harmful(own.probability) for own in said]
    verdicts = judge.verdicts(unseen)
    for label in (0, 1):
        rows = [n for n, example in enumerate(unseen) if example.label == label]
        now = [verdicts[n] for n in rows]
        reasons = Counter(v.review.partition("(")[0] for v in now if v.outcome == "review")
        out(
            f"{('harmless', 'harmful')[label]}: {len(rows)}; as typed {sum(flat[n] for n in rows)}"
            f" flagged; by verdict {sum(v.label == 'harmful' for v in now)} flagged,"
            f" {sum(v.outcome == 'review' for v in now)} for human review;"
            f" changed {sum(bool(v.obfuscation) for v in now)}; {dict(reasons.most_common(4))}\n"
        )
    sure = [e for e, hit in zip(unseen, flat, strict=True) if e.label and hit]
    sure = random.Random(1).sample(sure, TEXTS)
    calm = [e for e in unseen if not e.label]
    random.Random(5).shuffle(calm)
    calm = calm[: 3 * TEXTS]
    calm = [e for e, own in zip(calm, judge.verdicts(calm), strict=True) if is_missed(own)][:TEXTS]
    tables = (("known", OBFUSCATIONS), ("unseen generators", UNSEEN), ("third set", THIRD))
    for title, table in tables:
        total = [0, 0]
        for name, obfuscation in table.items():
            draw = Draw(name)
            hidden = [Example(e.id, obfuscation(e.text, draw)) for e in sure]
            typed = [not point.is_harmful(one.probability) for one in judge.machine.predict(hidden)]
            after = list(map(is_missed, judge.verdicts(hidden)))
            control = judge.verdicts([Example(e.id, obfuscation(e.text, draw)) for e in calm])
            stopped = sum(not is_missed(own) for own in control)
            out(
                f"{title}, {name}: {sum(typed)} as typed, {sum(after)} by verdict; harmless texts"
                f" that no longer pass: {stopped} of {len(calm)}\n"
            )
            total = [total[0] + sum(typed), total[1] + sum(after)]
        out(f"{title}, all of {TEXTS * len(table)}: {total[0]} as typed, {total[1]} by verdict\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
