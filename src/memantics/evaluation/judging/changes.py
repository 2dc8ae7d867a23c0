"""Changes of answers that test a judge: some keep the meaning, others make the answer wrong.

A change that keeps the meaning should keep the rating. A wrong answer should get a low rating:
another meme's reference, a constant sentence, the caption in other words, or a reference with a
changed fact.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from memantics.core.language import read_script
from memantics.core.records import Item, Outcome

ACCEPTED = 0.75  # proportion of the scale from which a mark accepts an answer
_SAID = {
    "filler": (
        " In other words, this is the point that the author wants to make with this meme.",
        "换句话说，这就是作者想通过这个表情包表达的意思。",
    ),
    "sure": ("Clearly, and without any doubt: ", "显然，毫无疑问："),
    "again": (" Put differently: ", "换言之："),
    "constant": ("The author wants to make people laugh.", "作者想让大家笑一笑。"),
    "caption": (
        'The meme presents the words "{}", and its point is what these words say.',
        "这个表情包写着“{}”，要表达的就是这句话的字面意思。",
    ),
}
_OPENING = re.compile(
    r"^(?:(?:the|this) (?:meme|author|image)(?: \w+)?(?: that)? |"
    r"(?:这个|该)?(?:表情包|作者)(?:想)?)",
    re.I,
)
_NUMBER = re.compile(r"\d+")
_VERB = re.compile(
    r"\b(is|are|was|were|can|will|does|do|has|have|should|would|could|must)\b(?! not)"
)
_SIMPLE = re.compile(
    r"\b(mocks|criticizes|criticises|jokes|praises|supports|complains|says|shows|wants|makes|claims)\b"
)
_CHINESE = re.compile(r"(是|能够|可以|应该|需要|喜欢|想)")


def _say(name: str, text: str) -> str:
    return _SAID[name][read_script(text) == "zh"]


def read_references(outcome: Outcome) -> list[str]:
    """Return the references of an answer."""
    gold = outcome.item.gold if isinstance(outcome.item.gold, list) else [outcome.item.gold]
    return [text for text in gold if isinstance(text, str) and text.strip()]


def change_fact(text: str) -> str:
    """Change one fact of a sentence: a number, or what it says is negated; empty if neither fits.

    >>> change_fact("The meme says that 3 cats are enough.")
    'The meme says that 4 cats are enough.'
    >>> change_fact("Meetings are too long.")
    'Meetings are not too long.'
    >>> change_fact("The meme mocks meetings.")
    'The meme by no means mocks meetings.'
    """
    if match := _NUMBER.search(text):
        return f"{text[: match.start()]}{int(match.group()) + 1}{text[match.end() :]}"
    if read_script(text) == "zh":
        return _CHINESE.sub(r"不\1", text, count=1) if _CHINESE.search(text) else ""
    if _VERB.search(text):
        return _VERB.sub(r"\1 not", text, count=1)
    return _SIMPLE.sub(r"by no means \1", text, count=1) if _SIMPLE.search(text) else ""


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """One way to change answers; ``make`` returns None where it does not apply.

    ``wrong`` is True if the changed answer is wrong, False if it means the same, and None for a
    correct answer that shows what a judge accepts.
    """

    name: str
    wrong: bool | None
    make: Callable[[Sequence[Outcome], int], Outcome | None]


def _put(outcome: Outcome, text: str) -> Outcome | None:
    return replace(outcome, value=text) if text and text != outcome.value else None


def _add_filler(all_: Sequence[Outcome], place: int) -> Outcome | None:
    text = str(all_[place].value)
    return _put(all_[place], text + _say("filler", text))


def _sound_sure(all_: Sequence[Outcome], place: int) -> Outcome | None:
    text = str(all_[place].value)
    return _put(all_[place], _say("sure", text) + text)


def _say_twice(all_: Sequence[Outcome], place: int) -> Outcome | None:
    text = str(all_[place].value)
    return _put(all_[place], text + _say("again", text) + text)


def _cut_opening(all_: Sequence[Outcome], place: int) -> Outcome | None:
    text = str(all_[place].value)
    return _put(all_[place], _OPENING.sub("", text, count=1).strip())


def _reverse(all_: Sequence[Outcome], place: int) -> Outcome | None:
    references = read_references(all_[place])
    if len(set(references)) < 2:
        return None
    return replace(all_[place], item=replace(all_[place].item, gold=[*references[::-1]]))


def _of_other_meme(all_: Sequence[Outcome], place: int) -> Outcome | None:
    mine = all_[place].item.group
    own = set(read_references(all_[place]))
    for step in range(1, len(all_)):
        other = all_[(place + step) % len(all_)]
        found = [text for text in read_references(other) if text not in own]
        if other.item.group != mine and found:
            return _put(all_[place], found[0])
    return None


def _constant(all_: Sequence[Outcome], place: int) -> Outcome | None:
    references = read_references(all_[place])
    return _put(all_[place], _say("constant", references[0])) if references else None


def _caption(all_: Sequence[Outcome], place: int) -> Outcome | None:
    context = all_[place].item.form.context
    told = [text for key, text in context.items() if text and ("text" in key or "caption" in key)]
    if not told:
        return None
    text = " ".join(told[0].split())[:300]
    return _put(all_[place], _say("caption", text).format(text))


def _changed_fact(all_: Sequence[Outcome], place: int) -> Outcome | None:
    for reference in read_references(all_[place]):
        if changed := change_fact(reference):
            return _put(all_[place], changed)
    return None


def _reference(all_: Sequence[Outcome], place: int) -> Outcome | None:
    """Return a reference as the answer; the judge sees the others."""
    references = list(dict.fromkeys(read_references(all_[place])))
    if len(references) < 2:
        return None
    item = replace(all_[place].item, gold=[*references[1:]])
    return replace(all_[place], item=item, value=references[0])


CHANGES = (
    AnswerChange("filler", False, _add_filler),
    AnswerChange("said twice", False, _say_twice),
    AnswerChange("without opening", False, _cut_opening),
    AnswerChange("confident tone", False, _sound_sure),
    AnswerChange("references reversed", False, _reverse),
    AnswerChange("a reference", None, _reference),
    AnswerChange("another meme", True, _of_other_meme),
    AnswerChange("constant sentence", True, _constant),
    AnswerChange("caption paraphrased", True, _caption),
    AnswerChange("one fact changed", True, _changed_fact),
)


def draw_sample(outcomes: Sequence[Outcome], count: int) -> list[Outcome]:
    """Return a fixed sample of answers: the same items for every judge, run and version."""
    kept = [o for o in outcomes if o.status == "answered" and isinstance(o.value, str)]
    return sorted(kept, key=lambda o: _rank(o.item))[:count]


def draw_items(items: Sequence[Item], count: int) -> list[Item]:
    """Return a fixed sample of items, whatever the judge and the run."""
    return sorted(items, key=_rank)[:count]


def _rank(item: Item) -> bytes:
    return hashlib.sha256(item.id.encode("utf-8", "replace")).digest()


def change_answers(change: AnswerChange, sample: Sequence[Outcome]) -> list[Outcome]:
    """Return the changed answers; items where the change does not apply are left out."""
    made = (change.make(sample, place) for place in range(len(sample)))
    return [one for one in made if one is not None]
