"""Reading aloud: a caption in, its likely readings out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memantics.core.errors import InputError, MissingExtra
from memantics.phonetics.assembly import build_reading, write_sound
from memantics.phonetics.caption import clean_text
from memantics.phonetics.evidence import find_double_meanings, find_evidence
from memantics.phonetics.mandarin import analyze_caption, load_lattice
from memantics.phonetics.pronunciation import list_sounds
from memantics.phonetics.ranking import Linear, load_weights
from memantics.phonetics.reading import DoubleMeaning, Language, Readings, Settings

_PLAIN = Settings()
_EVIDENCE = 0.7  # what each supporting word of the picture adds to the log-odds, two at most


def read_aloud(
    caption: str, *, description: str | None = None, settings: Settings = _PLAIN
) -> Readings:
    """What a caption may mean when it is read aloud.

    ``description`` says what the picture shows, in Chinese or English; its words support the
    literal reading. Any text is taken; what was left out is in ``notes``.

    >>> readings = read_aloud("年年有鱼", settings=Settings(model="dictionary"))
    >>> readings.sound, readings.language
    ('nián nián yǒu yú', 'zh')
    """
    if not isinstance(caption, str):
        raise InputError(f"a caption is text, not {type(caption).__name__}", hint="pass a string")
    text, notes = _prepare(caption, settings)
    language = _choose_language(text, settings)
    if language == "en":
        return _read_english(text, notes, settings)
    return _read_chinese(text, notes, description, settings)


def read_many(
    captions: Iterable[str | tuple[str, str | None]], *, settings: Settings = _PLAIN
) -> Iterator[Readings]:
    """Read captions one after the other, each alone or with a description; lazily, in order.

    >>> [r.caption for r in read_many(["好", ("鱼", None)], settings=Settings(model="dictionary"))]
    ['好', '鱼']
    """
    for entry in captions:
        caption, description = (entry, None) if isinstance(entry, str) else entry
        yield read_aloud(caption, description=description, settings=settings)


def _prepare(caption: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    notes = []
    # Cut first: cleaning must not walk through megabytes.
    text = clean_text(caption[: 4 * settings.max_characters])
    if len(caption) <= 4 * settings.max_characters and len(text) < len(caption):
        notes.append("characters that cannot be said or seen were left out")
    if len(text) > settings.max_characters or len(caption) > 4 * settings.max_characters:
        text = text[: settings.max_characters]
        notes.append(
            f"only the first {settings.max_characters} of {len(caption)} characters were read"
        )
    return text, tuple(notes)


def _choose_language(text: str, settings: Settings) -> Language:
    if settings.language != "auto":
        return settings.language
    if any(list_sounds(character) for character in text):
        return "zh"
    letters = sum(character.isascii() and character.isalpha() for character in text)
    return "en" if letters > 1 else "zh"


def _read_english(text: str, notes: tuple[str, ...], settings: Settings) -> Readings:
    from memantics.phonetics.english import read_english

    try:
        return read_english(text, notes, settings)
    except MissingExtra as missing:
        if settings.language == "en":
            raise
        # Among Chinese captions a stray English one must not end the batch.
        return Readings(text, "en", "none", "", (), 0.0, settings.threshold, notes=(str(missing),))


def _read_chinese(
    text: str, notes: tuple[str, ...], description: str | None, settings: Settings
) -> Readings:
    lattice = load_lattice(settings.model, settings.model_file)
    _, sure = load_weights(lattice.model.name)
    pictured = find_evidence(text, description, lattice) if description else {}
    analysis = analyze_caption(text, lattice, pictured=frozenset(pictured))
    readings = tuple(build_reading(c) for c in analysis.candidates[: settings.limit])
    signals = dict(analysis.signals)
    changed = [d.written for c in analysis.candidates[:1] for d in c.differences]
    evidence = tuple(dict.fromkeys(pictured[c] for c in changed if c in pictured))
    doubles: tuple[DoubleMeaning, ...] = ()
    if description:
        doubles = find_double_meanings(analysis.plain, description, text, lattice)
    signals["evidence"] = float(min(2, len(evidence)))
    odds = Linear({**sure.weights, "evidence": _EVIDENCE}, sure.bias)
    confidence = round(odds.probability(signals), 4) if readings else 0.0
    if not any(slot.sounds for slot in analysis.script.slots):
        notes = (*notes, "nothing in it can be read aloud")
    meant = bool(readings) and confidence >= settings.threshold
    return Readings(
        caption=text,
        language="zh",
        model=lattice.model.name,
        sound=write_sound(analysis.script),
        readings=readings,
        confidence=confidence,
        threshold=settings.threshold,
        evidence=evidence,
        double_meanings=() if meant else doubles[:3],
        notes=notes,
        signals=signals,
    )
