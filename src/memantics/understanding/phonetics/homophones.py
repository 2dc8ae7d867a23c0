"""Homophone readings of Chinese and English captions."""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path as FilePath

from memantics.core.errors import InputError, MissingExtra
from memantics.core.lines import Alternatives
from memantics.understanding.phonetics import pinyin, reading
from memantics.understanding.phonetics.caption import (
    NO_ALTERNATIVES,
    SpokenCaption,
    SyllableSlot,
    clean_text,
    join_fragments,
    simplify,
    write_scripts,
)
from memantics.understanding.phonetics.evidence import (
    cut_words,
    describe_picture,
    describe_senses,
    find_double_meanings,
    find_evidence,
    list_second_senses,
)
from memantics.understanding.phonetics.language import load_model
from memantics.understanding.phonetics.lattice import Lattice, Path
from memantics.understanding.phonetics.lines import (
    choose_lines,
    move_alternatives,
    place_lines,
)
from memantics.understanding.phonetics.pinyin import MAX_WORD
from memantics.understanding.phonetics.ranking import (
    Linear,
    PathCandidate,
    SlotDifference,
    describe_caption,
    describe_path,
    load_first_right,
    load_weights,
)
from memantics.understanding.phonetics.reading import Settings
from memantics.understanding.phonetics.senses import list_words

_PATHS = 60
_PICTURED = 1.5


@dataclass(frozen=True, slots=True)
class HomophoneSearch:
    """The search result for one caption; candidates are sorted, best first."""

    script: SpokenCaption
    plain: Path
    candidates: tuple[PathCandidate, ...]
    literal_rank: int
    signals: dict[str, float]

    def reorder(self, order: Linear, pictured: frozenset[str] = frozenset()) -> HomophoneSearch:
        """Rank the homophone candidates of this search again with other weights."""
        ranked = _sort(_score(c, order, pictured) for c in self.candidates)
        signals = describe_caption(ranked, self.plain, self.script, self.literal_rank)
        return replace(self, candidates=ranked, signals=signals)

    def list_changed(self) -> list[str]:
        """List the written characters that the first candidate replaces."""
        return [d.written for c in self.candidates[:1] for d in c.differences]


def _score(candidate: PathCandidate, order: Linear, pictured: frozenset[str]) -> PathCandidate:
    shown = sum(d.written in pictured for d in candidate.differences if d.written)
    return replace(candidate, score=order.score(candidate.features) + _PICTURED * shown)


@cache
def load_lattice(model: reading.ModelName, file: FilePath | None) -> Lattice:
    """Load the word lattice for the homophone search of a language model, once per process."""
    # The lattice creates hundreds of thousands of permanent objects, so garbage collection is
    # paused while it loads.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return Lattice(load_model(model, file), list_words(MAX_WORD))
    finally:
        if collecting:
            gc.enable()


def analyze_caption(
    caption: str,
    lattice: Lattice,
    *,
    order: Linear | None = None,
    pictured: frozenset[str] = frozenset(),
    alternatives: Alternatives = NO_ALTERNATIVES,
) -> HomophoneSearch:
    """Search the homophone readings of a caption and rank them.

    ``pictured`` are characters that name things in the image. The caption was probably written to
    name these things, so readings that replace them rank higher. ``alternatives`` are characters
    that OCR considered, by offset into the caption: further paths of the search.
    """
    rank = order or load_weights(lattice.model.name)[0]
    scripts = list(write_scripts(caption, alternatives))
    script = scripts[0]
    plain = lattice.read_plainly(script)
    found: dict[str, PathCandidate] = {}
    literal_rank = _PATHS
    for number, variant in enumerate(scripts):
        for place, path in enumerate(lattice.search(variant, _PATHS)):
            differences, features = describe_path(path, variant, plain, lattice)
            if not differences:
                literal_rank = min(literal_rank, place) if number == 0 else literal_rank
                continue
            candidate = _score(PathCandidate(path, variant, differences, features), rank, pictured)
            old = found.get(path.text)
            if old is None or old.score < candidate.score:
                found[path.text] = candidate
    ranked = _sort(found.values())
    signals = describe_caption(ranked, plain, script, literal_rank)
    return HomophoneSearch(script, plain, ranked, literal_rank, signals)


def _sort(candidates: Iterable[PathCandidate]) -> tuple[PathCandidate, ...]:
    return tuple(sorted(candidates, key=lambda c: (-c.score, c.path.text))[:_PATHS])


def write_pronunciation(script: SpokenCaption, differences: Sequence[SlotDifference] = ()) -> str:
    """Write the pinyin of a caption, with the changes of a reading if given."""
    changed = {d.slot: d for d in differences}
    parts: list[str] = []
    for number, slot in enumerate(script.slots):
        change = changed.get(number)
        if change is not None:
            text = pinyin.write_marked(change.sound) if change.sound else change.homophone
        elif slot.main is None:
            text = script.tokens[slot.token].text.strip()
        elif slot.simple:
            text = pinyin.write_marked(slot.main)
        else:
            text = slot.main.syllable
        # A loanword covers several syllables but is one word.
        if text and not (change and change.sound is None and parts and parts[-1] == text):
            parts.append(text)
    return " ".join(parts)


def build_reading(candidate: PathCandidate) -> reading.Reading:
    """Build the public record of a homophone reading with the spans of text that it changes."""
    script, differences = candidate.script, candidate.differences
    said = sum(bool(slot.sounds) for slot in script.slots)
    far = sum(d.distance > pinyin.MERGED for d in differences)
    return reading.Reading(
        text=candidate.path.text,
        pronunciation=write_pronunciation(script, differences),
        score=round(candidate.score, 4),
        gain=round(candidate.features["gain"], 3),
        distance=round(candidate.features["distance"], 3),
        syllables=said,
        syllables_matched=said - far,
        changes=tuple(_build_changes(script, differences)),
    )


def _build_changes(
    script: SpokenCaption, differences: Sequence[SlotDifference]
) -> list[reading.HomophoneSpan]:
    # Neighbouring syllables form one span: within a run, syllable number minus rank is constant.
    runs: dict[int, list[SlotDifference]] = {}
    for rank, difference in enumerate(sorted(differences, key=lambda d: d.slot)):
        runs.setdefault(difference.slot - rank, []).append(difference)
    return [_build_change(script, run) for run in runs.values()]


def _build_change(script: SpokenCaption, run: Sequence[SlotDifference]) -> reading.HomophoneSpan:
    tokens = [script.tokens[script.slots[d.slot].token] for d in run]
    written: list[str] = []
    homophone: list[str] = []
    notes: list[str] = []
    for difference in run:
        slot = script.slots[difference.slot]
        nearest = _nearest(slot, difference)
        written.append(pinyin.write_marked(slot.main) if slot.main and slot.simple else nearest)
        if difference.sound:
            homophone.append(pinyin.write_marked(difference.sound))
            notes.append(pinyin.describe_difference(nearest, difference.sound.syllable))
    # A loanword is repeated at each of its syllables but is one word.
    pieces = [d.homophone for i, d in enumerate(run) if d.sound or not i or run[i - 1].sound]
    return reading.HomophoneSpan(
        start=tokens[0].start,
        end=tokens[-1].end,
        written="".join(token.text for token in dict.fromkeys(tokens)),
        homophone="".join(pieces),
        written_pronunciation=" ".join(written),
        homophone_pronunciation=" ".join(homophone) or run[0].homophone,
        distance=round(sum(d.distance for d in run), 3),
        tones_differ=sum(d.tone_differs for d in run),
        notes=tuple(dict.fromkeys(note for note in notes if note)),
    )


def _nearest(slot: SyllableSlot, difference: SlotDifference) -> str:
    """Return the possible pronunciation of a character that is nearest to the replaced syllable."""
    if difference.sound is None:
        return slot.main.syllable if slot.main else ""
    syllable = difference.sound.syllable
    sounds = slot.sounds
    return min(
        sounds, key=lambda s: pinyin.measure_distance(s.syllable, syllable) + sounds[s]
    ).syllable


_PLAIN = Settings()
_EVIDENCE = 0.7  # added to the log-odds per supporting word of the description, at most two words


def read_homophones(
    caption: str,
    *,
    description: str | None = None,
    settings: Settings = _PLAIN,
    alternatives: Alternatives = NO_ALTERNATIVES,
) -> reading.HomophoneReadings:
    """Find the homophone readings of a caption.

    ``description`` describes the image in Chinese or English; its words support the literal
    reading. Any text is accepted; ``notes`` explain what was omitted. The lines of a Chinese
    caption are read together and alone, since OCR may add lines that are not part of the pun.

    >>> readings = read_homophones("年年有鱼", settings=Settings(model="dictionary"))
    >>> readings.pronunciation, readings.language
    ('nián nián yǒu yú', 'zh')
    """
    if not isinstance(caption, str):
        raise InputError(
            f"the caption must be a string, not {type(caption).__name__}",
            hint="pass the caption as str",
        )
    text, notes = _prepare(caption, settings)
    language = _choose_language(text, settings)
    if language == "en":
        return _read_english(text, notes, settings)
    joined = join_fragments(text)
    unsure = move_alternatives(caption, joined, alternatives)
    whole = _read_chinese(joined, notes, description, settings, unsure)
    alone = [
        _read_chinese(
            line, (), description, settings, move_alternatives(caption, line, alternatives, start)
        )
        for line, start in place_lines(caption[: settings.max_characters])
    ]
    return choose_lines(whole, alone, settings.limit) if alone else whole


def read_many(
    captions: Iterable[str | tuple[str, str | None]], *, settings: Settings = _PLAIN
) -> Iterator[reading.HomophoneReadings]:
    """Read several captions lazily and in order, each with an optional description.

    >>> [r.caption for r in read_many(["好", ("鱼", None)], settings=Settings(model="dictionary"))]
    ['好', '鱼']
    """
    for entry in captions:
        caption, description = (entry, None) if isinstance(entry, str) else entry
        yield read_homophones(caption, description=description, settings=settings)


def _prepare(caption: str, settings: Settings) -> tuple[str, tuple[str, ...]]:
    notes = []
    # Truncate first, so that megabytes of text are not cleaned.
    text = clean_text(caption[: 4 * settings.max_characters])
    if len(caption) <= 4 * settings.max_characters and len(text) < len(caption):
        notes.append("control and other invisible characters were removed")
    if len(text) > settings.max_characters or len(caption) > 4 * settings.max_characters:
        text = text[: settings.max_characters]
        notes.append(
            f"the caption was truncated to {settings.max_characters} of {len(caption)} characters"
        )
    return text, tuple(notes)


def _choose_language(text: str, settings: Settings) -> reading.ReadingLanguage:
    if settings.language != "auto":
        return settings.language
    if any(pinyin.list_sounds(character) for character in text):
        return "zh"
    letters = sum(character.isascii() and character.isalpha() for character in text)
    return "en" if letters > 1 else "zh"


def _read_english(
    text: str, notes: tuple[str, ...], settings: Settings
) -> reading.HomophoneReadings:
    from memantics.understanding.phonetics.english import read_english

    try:
        return read_english(text, notes, settings)
    except MissingExtra as missing:
        if settings.language == "en":
            raise
        # One English caption in a Chinese batch must not stop the batch.
        return reading.HomophoneReadings(
            text, "en", "none", "", (), 0.0, settings.threshold, notes=(str(missing),)
        )


def _read_chinese(
    text: str,
    notes: tuple[str, ...],
    description: str | None,
    settings: Settings,
    alternatives: Alternatives,
) -> reading.HomophoneReadings:
    lattice = load_lattice(settings.model, settings.model_file)
    _, sure = load_weights(lattice.model.name)
    pictured = find_evidence(text, description, lattice) if description else {}
    analysis = analyze_caption(
        text, lattice, pictured=frozenset(pictured), alternatives=alternatives
    )
    readings = tuple(build_reading(c) for c in analysis.candidates[: settings.limit])
    signals = dict(analysis.signals)
    changed = analysis.list_changed()
    evidence = tuple(dict.fromkeys(pictured[c] for c in changed if c in pictured))
    doubles: tuple[reading.DoubleMeaning, ...] = ()
    signals["evidence"] = 0.0
    if description:
        doubles = find_double_meanings(analysis.plain, description, text, lattice)
        signals |= describe_picture(text, description, changed, lattice)
    words = cut_words("".join(map(simplify, text)))
    signals |= describe_senses(words)
    odds = Linear({**sure.weights, "evidence": _EVIDENCE}, sure.bias)
    confidence = round(odds.probability(signals), 4) if readings else 0.0
    chance = load_first_right(lattice.model.name).probability(analysis.signals) if readings else 0.0
    if not any(slot.sounds for slot in analysis.script.slots):
        notes = (*notes, "the caption contains nothing that can be pronounced")
    intended = bool(readings) and confidence >= settings.threshold
    return reading.HomophoneReadings(
        caption=text,
        language="zh",
        model=lattice.model.name,
        pronunciation=write_pronunciation(analysis.script),
        readings=readings,
        confidence=confidence,
        threshold=settings.threshold,
        evidence=evidence,
        double_meanings=() if intended else doubles[:3],
        senses=list_second_senses(words),
        notes=notes,
        signals=signals,
        reading_probability=round(chance, 4),
    )
