"""Candidate rewritings of a meme's captions: several ways to reframe the cause of the emotion."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from memantics.understanding.phonetics.pinyin import MERGED, list_sounds, measure_distance
from memantics.understanding.phonetics.senses import rate_drawable
from memantics.understanding.reappraisal.kindness import feel
from memantics.understanding.reappraisal.lexicon import FoundTurn, Lexicon, match_case
from memantics.understanding.reappraisal.records import TargetEmotion
from memantics.understanding.reappraisal.sentences import rate_fluency
from memantics.understanding.reappraisal.situation import Understanding, UnderstoodLine, lexicon_of
from memantics.understanding.vision.regions import has_chinese

Way = Literal["turn", "sound", "clause", "line"]
_MOST = 40  # maximum rewritings per caption
_SHORT = 6  # maximum number of words of a short English caption
# minimum mean log10 probability of an English word; rarer captions are not sentences
_READABLE = -2.95
_KNOWN = -6.5  # log10 probability below which the language model does not know a word
# A kinder ending may follow a scene or a description of an activity.
_OPENINGS = {
    "scene": r"(?:(?:me|pov|\w+s|(?:my|your|that|this|the|an?) (?:\w+ )?\w+) )?when(?:ever)?\b|"
    r"(?:that|the) (?:moment|feeling)\b|(?:me|my face) (?:after|before|every time)\b",
    "doing": r"me,? (?:\w+ly )?\w+ing\b",
    "did": r"(?:i|we) \w+ed\b",
}
_PERSONS = {
    ("you", "you"): r"you|your|yours|yourself|you're|you've|you'll|u|ur|y'all",
    ("i", "me"): r"i|i'm|i've|i'll|i'd|me|my|mine|myself",
    ("we", "us"): r"we|we're|our|us",
}
# Signs of a second sentence, of another caption or of an OCR error.
_BROKEN = re.compile(r"[^\w\s,'\"“”&-]|\s-|-\s|\blike$|(?<=[^\s] )(?!I\b)[A-Z]")
_SUBJECT = re.compile(r"^(?:我们?|你们?|您|他|她|大家)?(?:真的?|太|好|很|有点|都|可)*")
_ASKS = re.compile(
    r"[什么谁吗么嘛哪几怎]|信不信|是不是|\b(?:wh\w+|how|any|do|does|did|is|are|can)\b",
    re.IGNORECASE,
)
_BUT = re.compile(r"\bbut\b", re.IGNORECASE)
_ENDS = " .。,，;；…!！?？~～"


@dataclass(frozen=True, slots=True)
class Rewriting:
    """A rewritten caption: the printed text and its intended reading."""

    printed: str
    intended: str
    way: Way
    cause: str


@dataclass(frozen=True, slots=True)
class Candidate:
    """New texts for all captions of a meme; None leaves a caption unchanged."""

    rewritings: tuple[Rewriting | None, ...]

    def texts(self, old: Sequence[str]) -> list[str]:
        """Return the printed text of each caption."""
        pairs = zip(self.rewritings, old, strict=True)
        return [new.printed if new else text for new, text in pairs]

    def intended(self, lines: Sequence[UnderstoodLine]) -> list[str]:
        """Return the intended reading of each caption."""
        pairs = zip(self.rewritings, lines, strict=True)
        return [new.intended if new else line.intended for new, line in pairs]


def list_candidates(found: Understanding, target: TargetEmotion) -> Iterator[Candidate]:
    """Rewrite every caption that can be rewritten, or replace the punchline."""
    lines = found.lines
    rewritings = [list(islice(rewrite(line, target), _MOST)) for line in lines]
    for pick in range(max(map(len, rewritings), default=0)):
        # Each further rewriting of one caption is combined with the best rewritings of the others.
        yield Candidate(
            tuple(each[min(pick, len(each) - 1)] if each else None for each in rewritings)
        )
    for place, each in enumerate(rewritings):
        for rewriting in each[:4] if len(lines) > 1 else ():
            yield _change_one(lines, place, rewriting)
    if found.cause is None:
        return
    for place in _find_punchlines(lines):
        for text in found.cause.lines:
            line = lines[place]
            if lexicon_of(line.intended).causes.get(found.cause.name) == found.cause:
                new = match_case(text, line.printed)
                yield _change_one(lines, place, Rewriting(new, text, "line", found.cause.name))


def _change_one(lines: Sequence[UnderstoodLine], place: int, new: Rewriting) -> Candidate:
    return Candidate(tuple(new if i == place else None for i in range(len(lines))))


def _find_punchlines(lines: Sequence[UnderstoodLine]) -> list[int]:
    """Find the captions that a new line may replace; of several, the first stays as the topic.

    A single Chinese caption may be replaced if it only expresses an emotion.
    """
    if len(lines) > 1:
        return list(range(len(lines) - 1, 0, -1))
    return (
        [0]
        if lines and has_chinese(lines[0].intended) and says_feeling_only(lines[0].intended)
        else []
    )


def says_feeling_only(text: str) -> bool:
    """Tell whether a caption expresses an emotion without a situation.

    >>> says_feeling_only("火冒三丈"), says_feeling_only("my phone is broken")
    (True, False)
    """
    left = lexicon_of(text).drop(text)
    return (
        not re.search(r"[a-z]{3,}", left, re.IGNORECASE)
        and len(re.sub(r"[\W我你您他她们了的吗吧呢啊呀就又都真太很好]", "", left)) < 2
    )


def rewrite(line: UnderstoodLine, target: TargetEmotion) -> Iterator[Rewriting]:
    """List the rewritings of one caption, the most faithful first."""
    lexicon = lexicon_of(line.intended)
    seen = {line.printed}
    for rewriting in (*_turn(line, lexicon), *_sound_like(line, lexicon, target)):
        if rewriting.printed not in seen:
            seen.add(rewriting.printed)
            yield rewriting
    if not lexicon.chinese:
        yield from _go_on(line, lexicon, target)


def _turn(line: UnderstoodLine, lexicon: Lexicon) -> Iterator[Rewriting]:
    """Replace phrases that express a negative cause; keep the visible thing of a pun."""
    # Replacing a single word in a long English sentence gives nonsense; replacing a phrase does
    # not.
    long = not lexicon.chinese and len(line.intended.split()) > _SHORT
    found = [
        each for each in lexicon.find_turns(line.intended) if not long or " " in each.match.group()
    ]
    if not found:
        return
    for choice in range(max(len(each.turn.new) for each in found)):
        text = _apply(line.intended, found, choice, lexicon)
        texts = [text]
        if any(each.turn.open for each in found):
            # The words kept by this replacement may contain another cause.
            again = lexicon.find_turns(text)
            texts += [_apply(text, again, 0, lexicon)] if again else []
        for turned in texts if lexicon.chinese else _join_turned(texts, lexicon):
            for printed in (*write_things(turned, line), turned):
                yield Rewriting(printed, turned, "turn", found[0].turn.cause)


def _join_turned(texts: Sequence[str], lexicon: Lexicon) -> Iterator[str]:
    """Join replaced English phrases; drop combinations such as SO HAPPY WITHOUT YOU.

    "Mad but still here" becomes "proud and still here".
    """
    for text in texts:
        words = re.findall(r"[a-z']+", text.casefold())
        bad = min((feel(word).valence for word in words), default=0.0)
        if bad >= 0 and not lexicon.heavy.search(text) and not lexicon.contrary.search(text):
            yield _BUT.sub(lambda but: match_case("and", but.group()), text)


def _apply(text: str, found: Sequence[FoundTurn], choice: int, lexicon: Lexicon) -> str:
    made, end = "", 0
    for each in found:
        made += text[end : each.match.start()]
        made += lexicon.say(each, min(choice, len(each.turn.new) - 1))
        end = each.match.end()
    made += text[end:]
    # A question that became a statement loses its question mark.
    return made if _ASKS.search(made) else made.rstrip("?？ ")


def write_things(text: str, line: UnderstoodLine) -> list[str]:
    """Write a text with the visible things of a pun in place of their homophones.

    >>> from memantics.understanding.reappraisal.situation import understand
    >>> pun = understand(["我很椒绿"]).lines[0]
    >>> write_things("我很骄傲", pun) if pun.reading else ["我很椒傲"]
    ['我很椒傲']
    """
    if not line.things:
        return [text]
    signs = list(text)
    taken: set[int] = set()
    for written, homophone in line.things:
        place = next((i for i, c in enumerate(signs) if c == homophone and i not in taken), None)
        if place is None:
            near = [i for i, c in enumerate(signs) if i not in taken and sound_alike(c, written)]
            place = near[0] if near else None
        if place is not None:
            signs[place] = written
            taken.add(place)
    made = "".join(signs)
    if made != line.printed:
        return [made]
    # All visible things are at their old positions. One of them is written as the intended word, so
    # that readers see the new meaning.
    options = (
        "".join(text[i] if i == position else c for i, c in enumerate(signs)) for position in taken
    )
    return sorted(option for option in options if option != line.printed)


@lru_cache(maxsize=4096)
def sound_alike(one: str, other: str) -> bool:
    """Tell whether two characters can be homophones, including common mergers.

    >>> sound_alike("椒", "骄"), sound_alike("星", "心"), sound_alike("桃", "梨")
    (True, True, False)
    """
    return any(
        measure_distance(a.syllable, b.syllable) < MERGED
        for a in list_sounds(one)
        for b in list_sounds(other)
    )


def _sound_like(
    line: UnderstoodLine, lexicon: Lexicon, target: TargetEmotion
) -> Iterator[Rewriting]:
    """Find kind words with a homophone of the pun's visible thing: 开心 with a star is 开星."""
    opening = _SUBJECT.match(line.printed)
    start = opening.group() if opening else ""
    for written in (thing for thing, _ in line.things if rate_drawable(thing)):
        usual = _say(written)
        for word in lexicon.homophones.get(target, ()):
            for place, sign in enumerate(word):
                if _say(sign) == usual:
                    said = word[:place] + written + word[place + 1 :]
                    lead = start if len(word) == 2 and written not in start else ""
                    yield Rewriting(lead + said, lead + word, "sound", "")
                    break


def _say(sign: str) -> str:
    """Return the usual pinyin of a character; -ing and -in, -eng and -en are merged."""
    return "".join(re.sub("(?<=[ie])ng$", "n", each.syllable) for each in list_sounds(sign)[:1])


def _go_on(line: UnderstoodLine, lexicon: Lexicon, target: TargetEmotion) -> Iterator[Rewriting]:
    """Append a kinder ending to a caption: the situation stays, the emotion changes.

    The ending agrees with the grammatical person. Captions with two persons or two sentences get no
    ending.
    """
    weights, head = lexicon.weigh(line.intended), line.printed.replace("’", "'").rstrip(_ENDS)
    cause, fold = max(weights, key=lambda name: weights[name]), head.casefold()
    kinds = [kind for kind, words in _OPENINGS.items() if re.match(words, fold)]
    if not weights[cause]:
        # If the cause is unknown, an ending that laughs about it fits most scenes.
        cause, target = "", "calm"
        kinds = kinds if feel(head).valence < 0 else []
    persons = [
        forms
        for forms, words in _PERSONS.items()
        if re.search(rf"(?<![\w'])(?:{words})(?!\w)", fold)
    ]
    broken = _BROKEN.search(fold if head.isupper() else head)
    if not kinds or broken or lexicon.heavy.search(head) or len(persons) > 1:
        return
    last = head.split()[-1]
    if (rate_fluency(head) or 0.0) < _READABLE or (rate_fluency(last) or 0.0) < _KNOWN:
        return
    subject, other = persons[0] if persons else ("", "")
    for text in lexicon.ends[kinds[0]].get(target, ()):
        if persons or "{" not in text:
            made = match_case(f"{head}, {text.format(you=subject, her=other)}", head)
            yield Rewriting(made, made, "clause", cause)
