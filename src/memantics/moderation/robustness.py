"""Robustness of detectors: obfuscated texts, and near-duplicates in the training data."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.errors import InputError
from memantics.core.language import find_converter
from memantics.core.result import Result, Table
from memantics.metrics.classification import place_macro_f1
from memantics.metrics.grouping import find_near_duplicates, find_twins
from memantics.metrics.interval import wilson
from memantics.moderation.evaluation import percent
from memantics.moderation.examples import Example
from memantics.moderation.explanation import explain
from memantics.moderation.fast import FastDetector, Prediction
from memantics.moderation.features import Embedder, clean
from memantics.moderation.obfuscation import MOST_TARGETS, add_emoji, space_out, spell_out
from memantics.understanding.phonetics.caption import clean_text, write_scripts
from memantics.understanding.phonetics.homophones import load_lattice
from memantics.understanding.phonetics.pinyin import Costs
from memantics.understanding.phonetics.reading import Settings
from memantics.understanding.phonetics.senses import rate_drawable

_ALIKE = Costs(change=0.0, tone=0.5, sound=3.0, common=0.3)
_OPTIONS = 40
Attack = Callable[[str, Sequence[str], int], str]


def obfuscation(
    caption: str, targets: Sequence[str], *, seed: int = 0, settings: Settings | None = None
) -> str:
    """Replace the characters of the target words by homophones, preferring printable ones.

    >>> obfuscation("你真笨", ["笨"], settings=Settings(model="dictionary")) != "你真笨"
    True
    """
    chosen = settings or Settings()
    lattice = load_lattice(chosen.model, chosen.model_file)
    text = clean_text(caption)[: chosen.max_characters]
    script = next(write_scripts(text))
    syllables = lattice.list_near(script)
    pick = random.Random(f"{seed}:{caption}")
    letters = list(text)
    spots = [
        start + offset
        for target in targets
        if target and (start := text.find(target)) >= 0
        for offset in range(len(target))
    ]
    for number, slot in enumerate(script.slots):
        place, said = script.tokens[slot.token].start, syllables[number]
        if place not in spots or said is None or not slot.simple:
            continue
        found = lattice.lexicon.find([said], _ALIKE, 0.4, _OPTIONS)
        options = sorted({m.word for m in found[0] if m.cost < 0.6} - {slot.simple, text[place]})
        drawable = [word for word in options if rate_drawable(word)] or options
        if drawable:
            letters[place] = pick.choice(drawable)
    return "".join(letters)


def swap_homophones(text: str, targets: Sequence[str], seed: int) -> str:
    """Replace the characters of the target words by homophones."""
    return obfuscation(text, targets, seed=seed, settings=Settings(model="dictionary"))


def swap_script(text: str, targets: Sequence[str], seed: int) -> str:
    """Convert simplified characters to traditional ones; needs the extra ``phonetics``."""
    del targets, seed
    convert = find_converter("s2t")
    return convert(text) if convert is not None else text


ATTACKS: Mapping[str, Attack] = {
    "homophones": swap_homophones,
    "emoji": add_emoji,
    "spaces": space_out,
    "traditional script": swap_script,
    "pinyin letters": spell_out,
}


@dataclass(frozen=True, slots=True)
class Evasion:
    """Recall on harmful memes with obfuscated text; ``alone`` is the recall without captions."""

    attack: str
    count: int
    recall: float
    low: float
    high: float
    alone: float


@dataclass(frozen=True, slots=True)
class Leakage:
    """Macro-F1 on all memes, and on those without a near-duplicate in the training data.

    ``where`` describes the training data in words.
    """

    duplicates: int
    count: int
    everything: float
    clean: float | None
    where: str = "another fold"


@dataclass(frozen=True, slots=True)
class Robustness(Result):
    """Results of the robustness tests; ``notes`` list tests that did not run."""

    evasions: tuple[Evasion, ...]
    leakage: Leakage | None
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Show recall of harmful memes under each obfuscation."""
        rows = tuple(
            (
                evasion.attack,
                percent(evasion.recall),
                f"{percent(evasion.low)}–{percent(evasion.high)}",
                percent(evasion.alone),
            )
            for evasion in self.evasions
        )
        columns = ("obfuscation", ">recall", ">95 % CI", ">recall, text only")
        return Table(columns, rows, "Recall of harmful memes with obfuscated text")

    @property
    def lines(self) -> tuple[str, ...]:
        """Lines shown with the table: number of memes, and near-duplicates in training."""
        counted = f"{self.evasions[0].count} harmful memes" if self.evasions else ""
        leak, shared = self.leakage, ""
        if leak is not None:
            shared = (
                f"{leak.duplicates:,} of {leak.count:,} memes have a near-duplicate in"
                f" {leak.where}; macro-F1 {percent(leak.everything)} with them,"
                f" {percent(leak.clean)} without"
            )
        return tuple(line for line in (counted, shared) if line)


def measure_evasion(
    detector: FastDetector,
    examples: Sequence[Example],
    embedder: Embedder | None = None,
    most: int = 200,
) -> tuple[Evasion, ...]:
    """Measure recall after obfuscating the characters with the highest contribution to harm.

    This is a white-box attack. It changes the printed text and keeps the captions; ``alone`` is
    the recall without captions. Raises InputError if no harmful meme has a text.
    """
    harmful = [e for e in examples if e.label == 1 and e.text.strip()]
    if not harmful:
        raise InputError("the data have no harmful meme with a text", hint="give labelled memes")
    chosen = random.Random(0).sample(harmful, min(most, len(harmful)))
    targets = [pick_targets(detector, example, embedder) for example in chosen]
    found = [_measure(detector, "none", chosen, embedder)]
    for name, attack in ATTACKS.items():
        if name == "traditional script" and find_converter("s2t") is None:
            continue
        obfuscated = [
            replace(example, text=attack(clean(example.text), letters, 0))
            for example, letters in zip(chosen, targets, strict=True)
        ]
        found.append(_measure(detector, name, obfuscated, embedder))
    return tuple(found)


def pick_targets(
    detector: FastDetector, example: Example, embedder: Embedder | None
) -> tuple[str, ...]:
    """Return the characters of the printed text with the highest contribution to harm."""
    shares = [
        share for share in explain(detector, example, embedder).fields if share.field == "text"
    ]
    if not shares:
        return ()
    ranked = sorted(zip(shares[0].characters, shares[0].text, strict=True), reverse=True)
    letters = dict.fromkeys(letter for value, letter in ranked if value > 0 and letter.isalpha())
    return tuple(letters)[:MOST_TARGETS]


def _measure(
    detector: FastDetector, name: str, examples: Sequence[Example], embedder: Embedder | None
) -> Evasion:
    hits = sum(p.label for p in detector.predict(examples, embedder))
    bare = [replace(e, text_caption="", image_caption="") for e in examples]
    alone = sum(p.label for p in detector.predict(bare, embedder)) / len(bare)
    low, high = wilson(hits, len(examples)) or (0.0, 1.0)
    return Evasion(name, len(examples), hits / len(examples), low, high, alone)


def measure_leakage(
    examples: Sequence[Example],
    predictions: Sequence[Prediction],
    *,
    folds: Sequence[int] | None = None,
    seen: Sequence[str] = (),
) -> Leakage:
    """Count memes with a near-duplicate in the training data, and measure macro-F1 without them.

    With ``folds``, near-duplicates in other folds count; otherwise near-duplicates among the
    training texts ``seen``.
    """
    texts = ["".join(clean(e.text).split()) for e in examples]
    if folds is not None:
        twins = find_twins(texts, list(folds))
    else:
        others = ["".join(clean(text).split()) for text in seen]
        twins = [place is not None for place in find_near_duplicates(texts, others)]
    truth = np.array([int(e.label or 0) for e in examples], np.int64)
    said = np.array([p.label for p in predictions], np.int64)
    kept = ~np.array(twins, bool)
    return Leakage(
        duplicates=int(sum(twins)),
        count=len(examples),
        everything=place_macro_f1(truth, said, 2),
        clean=place_macro_f1(truth[kept], said[kept], 2) if kept.any() else None,
        where="the training data" if folds is None else "another fold",
    )
