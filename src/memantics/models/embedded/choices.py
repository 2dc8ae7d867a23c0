"""Rules by which the embedded reader (an offline baseline) answers choices, numbers and yes/no.

Each question topic has a rule; questions without a known topic are answered by embedding
similarity.
"""

from __future__ import annotations

import re

import numpy as np

from memantics.core.language import guess_language
from memantics.core.records import Field
from memantics.metrics.rounding import VECTORS, AnyFloats, settle
from memantics.models.embedded.evidence import (
    LABEL,
    Evidence,
    Senses,
    asks_about_words,
    emotion_of,
    find_topic,
    is_empty_choice,
    match_poles,
    match_sides,
    names_harmless,
    overlap,
    split_sides,
)
from memantics.models.embedded.lexicon import has_chinese, read_sentences

# The values were chosen on the first half of the data named in
# docs/research/embedded-reader-rules.md.
_TEXT_WEIGHT, _WORDS_WEIGHT, _HARM_WEIGHT, _LENGTH_WEIGHT = 0.25, 1.0, 0.2, 1.0
_NEUTRAL = 0.05
_EMOTION_WEIGHT = 0.5
_SELF = 0.05
_NEAR_HARM = 0.1
_WE = re.compile(r"我们|咱|\b(?:we|us|our)\b", re.IGNORECASE)
_ME = re.compile(r"我|俺|\b(?:i|me|my|i'm)\b", re.IGNORECASE)
_YOU = re.compile(r"你|您|他|她|\b(?:you|your|he|she|they)\b", re.IGNORECASE)


def choose(evidence: Evidence, field: Field, senses: Senses) -> str:
    """Choose an option with an active classifier if one applies, else by the rule of the topic."""
    topic = find_topic(evidence.form, field)
    classifier = _ask_classifier(topic, evidence, field, senses)
    return classifier if classifier is not None else _choose_by_rule(topic, evidence, field, senses)


def _choose_by_rule(topic: str, evidence: Evidence, field: Field, senses: Senses) -> str:
    if topic == "pun":
        return _choose_side(field, is_pun(evidence, senses)) or _nearest(evidence, field, senses)
    if topic == "harm":
        return _choose_harm(evidence, field, senses)
    if topic == "valence":
        return _choose_pole(evidence, field, senses)
    if topic == "target":
        return _choose_target(evidence, field, senses)
    if topic == "emotion":
        return _choose_emotion(evidence, field, senses)
    return _nearest(evidence, field, senses)


# Mapping from topics of form fields to the topics of classifiers.
_CLASSIFIERS = {"valence": "sentiment", "target": "about", "emotion": "emotion", "pun": "pun"}


def _ask_classifier(topic: str, evidence: Evidence, field: Field, senses: Senses) -> str | None:
    """Return the prediction of an active classifier if its labels are exactly these options."""
    judge = senses.judges.get(_CLASSIFIERS.get(topic, ""))
    if judge is None:
        return None
    if topic == "pun":
        sides = split_sides(field)
        keys = {"pun": sides.yes, "no pun": sides.no} if sides else {}
    elif topic == "emotion":
        keys = {(o.text or o.key).strip().casefold(): o.key for o in field.options}
    else:
        keys = match_poles(field) if topic == "valence" else match_sides(field)
    if set(keys) != set(judge.classes):
        return None
    return keys.get(judge.ask(evidence.said, guess_language(evidence.said).language).label)


def is_pun(evidence: Evidence, senses: Senses) -> bool:
    """Return whether a caption is a pun, by similar-sounding words or by a second word sense."""
    return senses.homophones.read(evidence.said).is_pun


def read_intended(text: str, senses: Senses) -> str:
    """Return the intended reading of a pun caption; for other captions, the caption itself."""
    return senses.homophones.read(text).intended or text


def is_harmful(evidence: Evidence, senses: Senses) -> bool:
    """Return whether the caption or its homophone reading is rude, gloomy or resembles harm."""
    said = read_intended(evidence.said, senses)
    mood = senses.lexicon.feel(f"{evidence.said}\n{said}")
    return bool(mood.rude or mood.gloomy) or _lean(said, "harm", senses) > _NEAR_HARM


def _lean(text: str, topic: str, senses: Senses) -> float:
    """Return how much more similar a text is to one set of sentences than to another."""
    if not text.strip():
        return 0.0
    one, other = read_sentences()[topic].get("zh" if has_chinese(text) else "en", ((), ()))
    if not one:
        return 0.0
    rows = senses.encoder.encode([text, *one, *other])
    near = rows[1:] @ rows[0]
    return settle(float(near[: len(one)].max() - near[len(one) :].max()), VECTORS)


def weigh(text: str, senses: Senses) -> float:
    """Return the valence (sentiment) of a text, from -1 to 1.

    For a text without words of the sentiment lexicon, the valence is the similarity to two
    reference sentences. Its absolute value is then smaller than that of any lexicon word.
    """
    if not text.strip():
        return 0.0
    valence = senses.lexicon.feel(text).valence
    if valence != 0:
        return valence
    moods = read_sentences()["mood"]
    plain = [sentence for language in ("en", "zh") for side in moods[language] for sentence in side]
    vectors = senses.encoder.encode([text, *plain])
    near = vectors[1:] @ vectors[0]
    lean = settle(float(near[0] + near[2] - near[1] - near[3]), VECTORS)
    return max(-0.2, min(0.2, lean))


def _choose_side(field: Field, holds: bool) -> str | None:
    sides = split_sides(field)
    if sides is None:
        return None
    return sides.yes if holds else sides.no


def _choose_harm(evidence: Evidence, field: Field, senses: Senses) -> str:
    harmful = is_harmful(evidence, senses)
    side = _choose_side(field, harmful)
    if side is not None:
        return side
    harmless = [option.key for option in field.options if names_harmless(option.text)]
    if len(harmless) != 1:
        return _nearest(evidence, field, senses)
    if harmful:
        return _nearest(evidence, field, senses, without=frozenset(harmless))
    return harmless[0]


def _choose_pole(evidence: Evidence, field: Field, senses: Senses) -> str:
    poles = match_poles(field)
    valence = weigh(read_intended(evidence.said or evidence.background, senses), senses)
    wanted = "neutral" if abs(valence) < _NEUTRAL else "positive" if valence > 0 else "negative"
    order = [wanted, "negative" if valence < 0 else "positive", *poles]
    return next(poles[name] for name in order if name in poles)


def _choose_target(evidence: Evidence, field: Field, senses: Senses) -> str:
    """Choose the target by pronouns; without pronouns, by similarity to first-person sentences."""
    sides = match_sides(field)
    said = read_intended(evidence.said, senses)
    me, you = _ME.search(said) is not None, _YOU.search(said) is not None
    if not me and not you and said.strip():
        me = _lean(said, "oneself", senses) > _SELF
    alone = "self" if me and not you else "other"
    wanted = "both" if _WE.search(said) else alone
    return next(sides[name] for name in (wanted, "other", *sides) if name in sides)


def _choose_emotion(evidence: Evidence, field: Field, senses: Senses) -> str:
    """Choose the emotion word that is most similar to the text of the last image."""
    said = next((text for text in reversed(evidence.texts) if text), evidence.said)
    known = [o for o in field.options if emotion_of(o.text or o.key) is not None]
    valence = weigh(said, senses)
    vectors = senses.encoder.encode([said, *(f"I feel {o.text or o.key}" for o in known)])
    near = vectors[1:] @ vectors[0]
    scores = [
        float(near[i]) - _EMOTION_WEIGHT * abs(valence - (emotion_of(o.text or o.key) or 0))
        for i, o in enumerate(known)
    ]
    return known[_best(np.asarray(scores))].key


def _best(scores: AnyFloats) -> int:
    """Return the index of the highest score; in a tie, the first one."""
    return int(np.argmax(settle(scores, VECTORS)))


def _nearest(
    evidence: Evidence, field: Field, senses: Senses, without: frozenset[str] = frozenset()
) -> str:
    """Choose the option most similar to the question, the text of the meme and its context."""
    open_to = [option for option in field.options if option.key not in without]
    texts = [
        read_intended(evidence.option_texts.get((field.name, o.key), o.text), senses)
        for o in open_to
    ]
    real = [i for i, text in enumerate(texts) if not is_empty_choice(text)]
    kept = real or list(range(len(open_to)))
    question = evidence.form.question
    rows = senses.encoder.encode(
        [question, evidence.said, evidence.background, *(texts[i] or open_to[i].key for i in kept)]
    )
    by_question, by_words, by_background = (rows[3:] @ rows[i] for i in range(3))
    if evidence.background and not evidence.said:
        # In tasks where a chat or a similar context is answered, the question is the same for every
        # item.
        return open_to[kept[_best(by_background)]].key
    heavy = asks_about_words(question) or not evidence.texts
    scores = by_question + (_WORDS_WEIGHT if heavy else _TEXT_WEIGHT) * by_words
    if evidence.background:
        scores = scores + _WORDS_WEIGHT * by_background
    if find_topic(evidence.form, field) == "harm":
        moods = [senses.lexicon.feel(texts[i]).valence for i in kept]
        scores = scores - _HARM_WEIGHT * np.asarray(moods)
    if not without and max(len(text) for text in texts) > LABEL:
        # Authors of questions tend to make the correct answer more specific. Class names do not
        # count.
        scores = scores + _LENGTH_WEIGHT * np.log([1 + len(texts[i]) for i in kept])
    return open_to[kept[_best(scores)]].key


_SAME_PICTURE = 0.5
_SHIFT = re.compile(r"shift|magnitude|change|intensity|变化|程度", re.IGNORECASE)
_MOOD = re.compile(r"emotion|feeling|sentiment|accuracy|align|情感|情绪", re.IGNORECASE)
_POSITIVE_MOOD = re.compile(r"calm|happy|relaxed|excited|positive|开心|平静|放松", re.IGNORECASE)


def rate(evidence: Evidence, field: Field, senses: Senses) -> int:
    """Return a number on the field's scale (a rating).

    For a change of mood, the number is the distance between the texts of the first and last image.
    For a target mood, it is the shift of the last text towards that mood. For all other fields, it
    combines how much of the expected caption is present and how similar the images are.
    """
    name = field.name.replace("_", " ")
    if _SHIFT.search(name):
        push = 2 * _shift(evidence, senses) - 0.5
    elif _MOOD.search(name):
        push = _towards_target(evidence, senses)
    else:
        push = _quality(evidence, senses)
    middle, half = (field.low + field.high) / 2, (field.high - field.low) / 2
    value = round(settle(middle + half * max(-1.0, min(1.0, push)), VECTORS))
    return max(field.low, min(field.high, value))


def decide(evidence: Evidence, field: Field, senses: Senses) -> bool:
    """Answer a true-or-false field by its topic."""
    topic = find_topic(evidence.form, field)
    if topic == "similarity":
        return evidence.similarity is None or evidence.similarity >= _SAME_PICTURE
    if topic == "pun":
        return is_pun(evidence, senses)
    if topic == "harm":
        return is_harmful(evidence, senses)
    if not evidence.said:
        return False
    rows = senses.encoder.encode([evidence.form.question, evidence.said])
    return settle(float(rows[0] @ rows[1]), VECTORS) > 0.5


def _last(evidence: Evidence) -> str:
    return evidence.texts[-1] if evidence.texts else evidence.said


def _shift(evidence: Evidence, senses: Senses) -> float:
    before = evidence.texts[0] if len(evidence.texts) > 1 else evidence.find("source", "caption")
    return abs(weigh(_last(evidence), senses) - weigh(before, senses)) / 2


def _towards_target(evidence: Evidence, senses: Senses) -> float:
    target = evidence.find("target_emotion", "target")
    known = emotion_of(target)
    wanted = known if known is not None else float(bool(_POSITIVE_MOOD.search(target)))
    valence = weigh(_last(evidence), senses)
    return valence if wanted >= 0 else -valence


def _quality(evidence: Evidence, senses: Senses) -> float:
    wanted = evidence.find("target_caption", "rewritten", "reference", "caption")
    if wanted and evidence.texts:
        return overlap(wanted, _last(evidence)) - 0.5
    if evidence.similarity is not None:
        return evidence.similarity / 2
    return weigh(evidence.said, senses) / 2


# Free-text answers: one plain sentence about the text of the meme and its sentiment.

_LONGEST = {"en": 16, "zh": 40}
_REASON = re.compile(r"rational|reason|explan|justif|why|理由|原因|说明", re.IGNORECASE)
_SOUND = re.compile(r"pinyin|拼音", re.IGNORECASE)
_READ = re.compile(r"^(?:ocr|transcri\w*|文字)$", re.IGNORECASE)
_INTENT = re.compile(r"\bintents?\b|\bauthor\b", re.IGNORECASE)
_KIND, _MOST = 0.4, 24
_WORD = re.compile(r"[^\W\d_][\w'’-]{2,}")
_HOMOPHONE = re.compile(r"^(?:homophone|谐音词?)$", re.IGNORECASE)
_PUN_WORD = re.compile(r"^(?:pun_)?word$|^双关词$", re.IGNORECASE)


def write(evidence: Evidence, field: Field, senses: Senses) -> str:
    """Return the meme's text or its pinyin if that is requested; else one sentence about it."""
    said = evidence.said
    asked = f"{field.name} {evidence.form.question}"
    if _SOUND.search(asked):
        return spell(said)
    if _READ.search(field.name) and said.strip():
        return said
    if _HOMOPHONE.search(field.name) or _PUN_WORD.search(field.name):
        reading = senses.homophones.read(said)
        return reading.homophone if _HOMOPHONE.search(field.name) else reading.written
    if _REASON.search(field.name) and evidence.texts:
        said = evidence.texts[-1]
    language = "zh" if evidence.form.language == "zh" else "en"
    if not said.strip():
        return str(read_sentences()["speech"][language]["silent"])
    if language == "en" and _INTENT.search(asked):
        deed = "praises" if senses.lexicon.feel(said).valence > _KIND else "mocks"
        return f"the meme {deed} {_find_topic(said, senses)}"
    return _describe(said, language, senses)


def _describe(said: str, language: str, senses: Senses) -> str:
    """Return one sentence about the function of the meme, with the first words of its text."""
    mood = senses.lexicon.feel(said)
    valence = weigh(said, senses)
    kind = "rude" if mood.rude else "gloomy" if mood.gloomy else "plain"
    if kind == "plain" and abs(valence) > 0.2:
        kind = "positive" if valence > 0 else "negative"
    phrase = read_sentences()["speech"][language][kind]
    if language == "en":
        return f'{phrase} "{_start(said, language)}"'
    return f"{phrase}“{_start(said, language)}”{_quote_intended(said, senses)}"


def _find_topic(said: str, senses: Senses) -> str:
    """Return the word of a text that is most similar to the whole text."""
    found = dict.fromkeys(word.casefold() for word in _WORD.findall(said))
    words: list[str] = [word for word in found if word not in senses.lexicon.function_words]
    if not words:
        return "something"
    rows = senses.encoder.encode([said, *words[:_MOST]])
    return words[int(np.argmax(settle(rows[1:] @ rows[0], VECTORS)))]


def spell(text: str) -> str:
    """Convert Chinese text to pinyin with tone marks, separated by spaces.

    >>> spell("今晚又狮眠了")
    'jīn wǎn yòu shī mián le'
    """
    from pypinyin import Style, lazy_pinyin

    return " ".join(lazy_pinyin(text, style=Style.TONE, errors="ignore"))


def _start(said: str, language: str) -> str:
    words = said.replace('"', "'").split()
    if language == "zh":
        text = "，".join(words)
        return text if len(text) <= _LONGEST["zh"] else text[: _LONGEST["zh"]] + "…"
    return " ".join(words[: _LONGEST["en"]]) + (" …" if len(words) > _LONGEST["en"] else "")


def _quote_intended(said: str, senses: Senses) -> str:
    reading = senses.homophones.read(said)
    return f"，听起来像“{reading.intended}”" if reading.intended else ""
