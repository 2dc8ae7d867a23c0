"""Rule-based critic: finds defects of a draft from its text and the knowledge graph."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from functools import lru_cache

from memantics.construction.questions.records import Defect, QuestionDraft, QuestionSettings, Slot
from memantics.core.meaning import DIMENSIONS
from memantics.understanding.knowledge.ontology.vocabulary import find_kind
from memantics.understanding.knowledge.records import Individual, Knowledge

# Text measures for options and questions: length, similarity, answer cues.

_CJK = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+(?:['’][^\W_]+)?")
_STOP_WORDS = (
    "a an and are as at be by does do for from has have how in into is it its of on or that the "
    "their there this these to was what when where which who whom whose why with meme it's "
    "的 了 是 在 和 与 这 那 个 哪 吗"
)
_STOP = frozenset(_STOP_WORDS.split(" "))
_SAME = 0.9
_ALIKE = 0.8
_ALL_OF = re.compile(
    r"\b(all|both|any|each|most)\s+of\s+(the|these|those|them)\b|\ball\s+(are|is)\s+(correct|true)"
    r"|\bboth\s+[abcd1-4]\b|\b[abcd]\s+and\s+[abcd]\b|以上(都|皆|全)|全都(是|对)",
    re.IGNORECASE,
)
_NONE_OF = re.compile(
    r"\b(none|neither|nothing)\s+of\s+(the|these|those|them)\b|\bnone\s+(is|are)\s+(correct|true)"
    r"|都不(是|对)|以上皆非",
    re.IGNORECASE,
)
# "scene" and "emotion" are everyday words; only the capitalised form names a class.
_EVERYDAY = frozenset({"Scene", "Emotion"})


def _spell(name: str) -> re.Pattern[str]:
    """Return a pattern for the common spellings of a class name."""
    if name in _EVERYDAY:
        return re.compile(rf"(?<=[a-z,] ){name}\b|{name}/")
    spelled = r"[\s_-]*".join(re.findall(r"[A-Z][a-z]+", name))
    return re.compile(rf"(?i)\b{spelled}\b")


_CLASS_NAMES = {
    name: _spell(name) for name in (*DIMENSIONS, "EmotionExpression", "ToxicityAssessment")
}


@lru_cache(maxsize=65_536)
def fold(text: str) -> str:
    """Normalise a text: no case, outer punctuation or compatibility forms.

    >>> fold(" “A  Cat.” ")
    'a cat'
    """
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join(plain.split()).strip(" .,;:!?\"'“”‘’。，；：！？「」")


def tokens(text: str) -> list[str]:
    """Split a text into words; each Chinese, Japanese or Korean character is one.

    >>> tokens("A cat's 键盘")
    ['a', "cat's", '键', '盘']
    """
    return _TOKEN.findall(unicodedata.normalize("NFKC", text).casefold())


@lru_cache(maxsize=65_536)
def content(text: str) -> frozenset[str]:
    """Return the content words."""
    return frozenset(word for word in tokens(text) if word not in _STOP)


def count_words(text: str) -> int:
    """Count words; two Chinese characters count as one word.

    >>> count_words("Loose key caps"), count_words("键帽掉了")
    (3, 2)
    """
    characters = len(_CJK.findall(text))
    return len(tokens(text)) - characters + math.ceil(characters / 2)


def alike(one: str, other: str) -> bool:
    """Return whether two texts say the same in nearly the same words.

    >>> alike("A grumpy cat", "a grumpy cat."), alike("a cat", "a dog")
    (True, False)
    """
    first, second = fold(one), fold(other)
    if first == second:
        return True
    left, right = content(one), content(other)
    if left and right and len(left & right) / len(left | right) > _ALIKE:
        return True
    if min(len(first), len(second)) < 8:
        return False
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    # Cheap upper bounds of the similarity come first, since most pairs are not alike.
    likely = matcher.real_quick_ratio() > _SAME and matcher.quick_ratio() > _SAME
    return likely and matcher.ratio() > _SAME


def find_class_name(text: str) -> str | None:
    """Return the ontology class named in a text, in any common spelling.

    >>> find_class_name("What does SemioticProjection imply here?")
    'SemioticProjection'
    >>> find_class_name("What is the overall intent?"), find_class_name("What emotion is it?")
    ('OverallIntent', None)
    """
    return next((name for name, pattern in _CLASS_NAMES.items() if pattern.search(text)), None)


def claims_all(text: str) -> bool:
    """Return whether an option refers to several others, such as "all of the above".

    >>> claims_all("All of the above"), claims_all("All the cats")
    (True, False)
    """
    return _ALL_OF.search(text) is not None


def claims_none(text: str) -> bool:
    """Return whether an option means "none of these".

    >>> claims_none("None of these fits"), claims_none("Nobody laughs")
    (True, False)
    """
    return _NONE_OF.search(text) is not None


def leaks_into(question: str, correct: str, wrong: Sequence[str]) -> bool:
    """Return whether a question contains most words of its answer, but of no other option.

    >>> leaks_into("Why is the grumpy cat angry?", "a grumpy cat", ["a tired dog", "a red car"])
    True
    """
    asked = content(question)

    def share(text: str) -> float:
        words = content(text)
        return len(words & asked) / len(words) if words else 0.0

    return share(correct) >= 0.66 and share(correct) > max(map(share, wrong), default=0.0) + 0.2


_DENIALS = re.compile(
    r"^(no|not|never|nobody|nothing|none|without|isn't|没有|不是|无)\b\s*|^(没有|不是|并非)",
    re.IGNORECASE,
)
_HARMLESS = re.compile(
    r"\b(harmless|nobody|no one|not (toxic|harmful|offensive)|nothing (toxic|harmful|offensive))\b"
    r"|无害|没有人(?!性|味|情)",
    re.IGNORECASE,
)
_LONGEST_QUESTION = 300


def find_defects(
    draft: QuestionDraft, slot: Slot, knowledge: Knowledge, settings: QuestionSettings
) -> Iterator[Defect]:
    """Yield all defects of a draft, the most severe first."""
    yield from check_citations(draft, slot, knowledge)
    yield from check_question(draft)
    yield from check_options(draft, settings)
    yield from check_graph(draft, slot, knowledge)
    yield from check_lengths(draft)


def check_citations(draft: QuestionDraft, slot: Slot, knowledge: Knowledge) -> Iterator[Defect]:
    """Yield citation defects: no citation, an unknown fact, or not the question's subject."""
    if not draft.cites and slot.focus:
        yield Defect("citation missing", f"cite what the question rests on, first {slot.focus}")
        return
    dangling = [cite for cite in draft.cites if cite not in knowledge.by_key]
    if dangling:
        yield Defect("citation dangling", f"{dangling[0]!r} is cited and does not exist")
    elif slot.focus and slot.focus not in draft.cites:
        yield Defect("citation missing", f"the question must be about {slot.focus} and cite it")


def check_question(draft: QuestionDraft) -> Iterator[Defect]:
    """Yield defects of the question: several sentences, class names, words of its answer."""
    if count_words(draft.question) < 2 or len(draft.question) > _LONGEST_QUESTION:
        yield Defect("question form", "the question must be one sentence")
    wrong = [option.text for option in draft.wrong]
    for text in (draft.question, draft.correct, *wrong):
        if name := find_class_name(text):
            fault = text if text in wrong else ""
            message = f"do not name the category ({name}); ask about the meme"
            yield Defect("class name", message, fault)
    if leaks_into(draft.question, draft.correct, wrong):
        yield Defect("answer leaked", "the question contains the words of its answer")


def check_options(draft: QuestionDraft, settings: QuestionSettings) -> Iterator[Defect]:
    """Yield defects of the options: duplicates, too many words, references to other options."""
    earlier = [draft.correct]
    yield from _check_option(draft.correct, "", settings)
    for text in (option.text for option in draft.wrong):
        yield from _check_option(text, text, settings)
        if twin := next((other for other in earlier if alike(text, other)), None):
            yield Defect("duplicate options", f"{text!r} and {twin!r} say the same", text)
        earlier.append(text)


def _check_option(text: str, fault: str, settings: QuestionSettings) -> Iterator[Defect]:
    # One or two extra words are accepted.
    most = settings.words + max(1, settings.words // 4)
    if not 1 <= count_words(text) <= most:
        message = f"{text[:80]!r} must have 1 to {settings.words} words"
        yield Defect("word budget", message, fault)
    if fold(text) == fold(settings.none_text) or claims_none(text):
        yield Defect("none option", f"{text!r} must not be a 'none of these': we add it", fault)
    elif claims_all(text):
        yield Defect("all of the above", f"{text!r} must not point to other options", fault)


def check_graph(draft: QuestionDraft, slot: Slot, knowledge: Knowledge) -> Iterator[Defect]:
    """Yield conflicts with the knowledge graph: a true distractor, or a contradicted answer."""
    rivals = [*knowledge.of(slot.dimension)]
    for text in (option.text for option in draft.wrong):
        if (support := find_support(text, rivals)) is not None:
            message = f"{text!r} is true of this meme: it says the same as {support}"
            yield Defect("wrong option is right", message, text)
    cited = [knowledge.by_key[key] for key in draft.cites if key in knowledge.by_key]
    denial = _DENIALS.match(draft.correct)
    plain = [individual for individual in cited if not _DENIALS.match(individual.label)]
    denied = find_support(draft.correct[denial.end() :], plain) if denial else None
    if denied is not None:
        yield Defect("contradicted", f"the knowledge has {denied}, which the answer denies")
    elif slot.dimension == "Toxicity":
        yield from _check_toxicity(draft, cited)


def _check_toxicity(draft: QuestionDraft, cited: Sequence[Individual]) -> Iterator[Defect]:
    kinds = {individual.kind for individual in cited if individual.kind}
    named = {kind for word in tokens(draft.correct) if (kind := find_kind(word))}
    # The answer "harmful" is true for every kind of toxicity.
    if kinds and named - kinds - {"Harmful"}:
        yield Defect(
            "contradicted", f"the knowledge says {' and '.join(sorted(kinds))}, the answer does not"
        )
    elif kinds and (denied := _HARMLESS.search(draft.correct)):
        message = f"the knowledge says that somebody is harmed, the answer {denied[0]!r}"
        yield Defect("contradicted", message)


def find_support(text: str, individuals: Sequence[Individual]) -> str | None:
    """Return the fact (ontology individual) that says the same as a text, or None.

    >>> cat = Individual("VisualMaterial", "cat", "a grumpy cat", "It sits on a red sofa")
    >>> find_support("Grumpy cat", [cat]), find_support("A sofa for sale", [cat])
    ('VisualMaterial/cat', None)
    """
    words = content(text)
    if not words:
        return None
    for individual in individuals:
        if alike(text, individual.label):
            return individual.key
        if len(words) >= 2 and words <= content(f"{individual.label} {individual.description}"):
            return individual.key
    return None


def check_lengths(draft: QuestionDraft) -> Iterator[Defect]:
    """Yield options whose length differs so much from the correct one that it is a cue."""
    size = len(draft.correct)
    for text in (option.text for option in draft.wrong):
        short, long = sorted((len(text), size))
        if long > 2 * short + 12:
            message = (
                f"{text!r} has {len(text)} characters and the correct option {size}: "
                "make them about equally long"
            )
            yield Defect("length spread", message, text)
