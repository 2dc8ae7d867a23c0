"""Is a rewritten caption a sentence of its language about the same subject?

Fluency comes from the language model of the language: the word trigrams of libime for Chinese, of
pocketsphinx for English. The thresholds accept 95 % of captions that people wrote
(docs/research/reappraisal-planner.md). The subject is found by closed word lists, without a parser.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from memantics.core.errors import MissingExtra
from memantics.understanding.phonetics.caption import write_scripts
from memantics.understanding.phonetics.english import load_vocabulary
from memantics.understanding.phonetics.homophones import load_lattice
from memantics.understanding.phonetics.language import load_model
from memantics.understanding.reappraisal.kindness import read_caption
from memantics.understanding.vision.regions import has_chinese

# minimum log10 probability per Chinese character or English word; an old caption may be rarer
_FLUENT = {True: -4.55, False: -3.6}
# a new caption below this probability must not be much rarer than the old one, either
_USUAL, _LOSS = {True: -3.6, False: -3.2}, 1.1
_FEWEST = {True: 4, False: 3}  # characters or words; shorter texts are exclamations
_WORD = re.compile(r"[a-z0-9']+")
_HAN = re.compile(r"[\u3400-\u9fff]")
_PERSONS = {
    "I": "i i'm im i've i'll i'd me my mine myself",
    "you": "you you're you've you'll your yours yourself u ur y'all",
    "he": "he he's him his himself",
    "she": "she she's her hers herself",
    "we": "we we're we've we'll us our ours",
    "they": "they they're them their theirs",
}
_PERSON = {word: person for person, words in _PERSONS.items() for word in words.split()}
_CHINESE_PERSONS = {
    "我": re.compile("我|俺|咱|本宝宝|老子"),
    "你": re.compile("[你您]"),
    "他": re.compile("[他她它]"),
}
# words in front of a subject, and words that never name one
_OPENING_WORDS = """a after again all always an and another any are at be because before but can
could dear did do does even every feeling for from here hey how if in is it it's
just mfw moment never no not of oh omg on once only please pov should so some
still tfw that that's the then there these this those time to until was well
were what when whenever while who why will with would wow"""
_OPENING = frozenset(_OPENING_WORDS.split())
_VERBS_WORDS = """are aren't be been came can can't come comes could did didn't do does doesn't
don't get gets go goes got had has hasn't have haven't is isn't made make makes
may might must said say says should take takes took was wasn't went were weren't
will won't would wouldn't"""
_VERBS = frozenset(_VERBS_WORDS.split())
_PARTICLES = frozenset("的了是在就都也和有这那吗吧呢啊不很真太好又还要会能去来到被把给一个么什怎")


def keeps_subject(before: Sequence[str], after: Sequence[str]) -> bool:
    """Tell whether the new captions keep the subject of each caption that they change.

    >>> keeps_subject(["93 people died"], ["i start with one thing"])
    False
    >>> keeps_subject(["my phone is dead", "i panic"], ["my phone is dead", "i drift"])
    True
    >>> keeps_subject(["你是不是有病"], ["我真有才"]), keeps_subject(["你有病"], ["你真有才"])
    (False, True)
    """
    new = set(_name_subjects(" ".join(after)))
    changed = [old for old, text in zip(before, after, strict=True) if old != text.strip()]
    return all(not (subject := find_subject(old)) or bool(subject & new) for old in changed)


def find_subject(text: str) -> frozenset[str]:
    """Return the person or the words of a caption's subject; empty if none is found.

    >>> sorted(find_subject("when my phone is at one percent")), sorted(find_subject("Panic!"))
    (['I', 'phone'], [])
    """
    if has_chinese(text):
        found = list(_name_chinese(text))
        return frozenset(found[:1] if found[:1] and found[0] in _CHINESE_PERSONS else found[:4])
    words = _WORD.findall(text.casefold().replace("’", "'"))
    if len(words) < _FEWEST[False] - 1:
        return frozenset()
    subject: list[str] = []
    for word in words:
        if word in _PERSON:
            subject.append(_PERSON[word])
            if word in ("i", "you", "he", "she", "we", "they") or "'" in word:
                break
        elif subject and word in _VERBS:
            break
        elif word not in _OPENING and word not in _VERBS:
            subject.append(word)
        if len(subject) == 4:
            break
    return frozenset(subject)


def _name_subjects(text: str) -> Iterator[str]:
    """Name all persons and words of a text that may be its subject."""
    yield from _name_chinese(text)
    for word in _WORD.findall(text.casefold().replace("’", "'")):
        yield _PERSON.get(word, word)


def _name_chinese(text: str) -> Iterator[str]:
    """Name the first person, then the characters, of a Chinese text."""
    places = {
        person: found.start()
        for person, forms in _CHINESE_PERSONS.items()
        if (found := forms.search(text))
    }
    yield from sorted(places, key=lambda person: places[person])
    signs = [sign for sign in _HAN.findall(text) if sign not in _PARTICLES]
    if len(signs) >= _FEWEST[True] or places:
        yield from (sign for sign in signs if sign not in _CHINESE_PERSONS)


def is_sentence(text: str, old: str) -> bool:
    """Tell whether the language model accepts a text, or gave the old text an even lower score.

    The intended reading of a pun counts. Without a language model every text is accepted.
    """
    chinese = has_chinese(text)
    if chinese != has_chinese(old):
        return False
    if chinese and load_model().name != "trigram":
        return True  # the thresholds are those of the trigram model
    new = read_caption(text)
    if len(_HAN.findall(new) if chinese else new.split()) < _FEWEST[chinese]:
        return True
    score, before = rate_fluency(new), rate_fluency(read_caption(old))
    if score is None or before is None:
        return True
    rarer = score < _USUAL[chinese] and score < before - _LOSS
    return score >= min(_FLUENT[chinese], before) and not rarer


@lru_cache(maxsize=4096)
def rate_fluency(text: str) -> float | None:
    """Return the log10 probability per character or English word.

    Returns None if the language's extra is not installed.
    """
    try:
        if has_chinese(text):
            script = next(iter(write_scripts(text)))
            return load_lattice("auto", None).read_plainly(script).common / max(1, len(text))
        words = re.findall(r"[a-z']+", text.casefold().replace("’", "'"))
        weigh_word = load_vocabulary().weigh
        sums = sum(weigh_word(words[max(0, i - 2) : i + 1]) for i in range(len(words)))
        return sums / max(1, len(words))
    except MissingExtra:
        return None
