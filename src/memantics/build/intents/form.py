"""The guideline's form: an intent reads on after "the meme", doubtful knowledge ends in ``?``."""

from __future__ import annotations

import re

from memantics.build.drafts import check_wording
from memantics.core.closed import Closed
from memantics.core.reply import read_object
from memantics.core.task import Unparsed

LONGEST = 300
MOST_INTENTS, MOST_SENTENCES = 3, 8
_PREFIX = {
    "en": re.compile(r"(?:the|this) meme(?:'s author)?\s+", re.I),
    "zh": re.compile(r"(?:这张|这个|该)(?:表情包|梗图|图片?|meme)\s*"),
}
_END = " .。．!！;；,，"
_HELPERS = frozenset(["is", "has", "does", "says", "was", "may", "might", "can", "could", "would"])
_ADVERB = re.compile(r"[a-z]+ly")
# "tries to", "mocks": the third person of a verb; "is about" says nothing about an act.
_VERB = re.compile(r"[a-z]{2,}s\b", re.I)
_NO_VERBS = frozenset(["this", "his", "its", "others", "people's", "was", "us", "memes", "users"])


class _SaidIntents(Closed):
    intents: list[str]


class _Sentence(Closed):
    sentence: str
    certain: bool


class _SaidBackground(Closed):
    background: list[_Sentence]


def read_intents(reply: str, language: str, most: int = MOST_INTENTS) -> tuple[str, ...]:
    """The ranked intents of a reply in the guideline's form, each once.

    >>> read_intents('{"intents": ["The meme mocks late trains."]}', "en")
    ('mocks late trains',)
    """
    said = read_object(reply, _SaidIntents).intents
    made = dict.fromkeys(check_intent(text, language) for text in said)
    if not made:
        raise Unparsed("there is no intent: give at least one")
    if len(made) > most:
        raise Unparsed(f"{len(made)} intents are too many: give the {most} most likely at most")
    folded = {text.casefold() for text in made}
    if len(folded) < len(made):
        raise Unparsed("two intents are the same but for capitals")
    return tuple(made)


def check_intent(said: str, language: str) -> str:
    """One intent without its opening words and full stop; what is no clause is refused.

    >>> check_intent("the meme Praises a dog for waiting.", "en")
    'praises a dog for waiting'
    >>> check_intent("Funny dog", "en")
    Traceback (most recent call last):
    memantics.core.task.Unparsed: 'funny dog' does not begin with a verb that fits 'The meme …'
    """
    line = check_wording(said, "intent", language, LONGEST).strip(_END)
    prefix = _PREFIX.get(language)
    if prefix is not None and (match := prefix.match(line)):
        line = line[match.end() :].strip(_END)
    if not line:
        raise Unparsed("an intent is empty")
    if language == "en":
        line = _check_english(line)
    if re.search(r"[.!?]\s+[A-Z]|[。！？]\s*\S", line):
        raise Unparsed(f"{line[:60]!r} is more than one sentence")
    return line


def _check_english(line: str) -> str:
    words = line.split()
    # Only a plain capital is lowered: "USA" or "iPhone" as first word is no verb anyway.
    if words[0].istitle():
        line = words[0].lower() + line[len(words[0]) :]
        words = line.split()
    place = 1 if len(words) > 1 and _ADVERB.fullmatch(words[0]) else 0
    verb = words[place].strip(_END)
    fits = verb in _HELPERS or (_VERB.fullmatch(verb) and verb.casefold() not in _NO_VERBS)
    if len(words) < 2 or not fits:
        raise Unparsed(f"{line[:60]!r} does not begin with a verb that fits 'The meme …'")
    return line


def read_background(
    reply: str, language: str = "en", most: int = MOST_SENTENCES
) -> tuple[str, ...]:
    """Sentences of background knowledge, each once; doubtful ones end in a question mark.

    >>> read_background('{"background": [{"sentence": "Owls hunt by night", "certain": false}]}')
    ('Owls hunt by night?',)
    """
    made: dict[str, str] = {}
    for sentence in read_object(reply, _SaidBackground).background:
        line = (
            check_wording(sentence.sentence, "sentence", language, LONGEST)
            .removeprefix("*")
            .strip()
        )
        bare = line.rstrip(".。?？ ")
        doubtful = not sentence.certain or line.endswith(("?", "？"))
        made.setdefault(bare.casefold(), f"{bare}?" if doubtful else line)
    if len(made) > most:
        raise Unparsed(f"{len(made)} sentences are too many: give the {most} that matter most")
    return tuple(made.values())
