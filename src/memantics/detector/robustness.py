"""How easily a detector is evaded, what that costs, and how much near-duplicates flatter it."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from memantics.core.errors import InputError
from memantics.core.language import find_converter
from memantics.core.result import Result, Table
from memantics.detector.calibration import macro_f1
from memantics.detector.disguises import MOST_TARGETS, add_emoji, space_out, spell_out
from memantics.detector.evaluation import percent
from memantics.detector.examples import Example
from memantics.detector.explanation import explain
from memantics.detector.fast import FastDetector, Prediction
from memantics.detector.features import Embedder, clean
from memantics.metrics.duplicates import find_near_duplicates, find_twins
from memantics.metrics.interval import wilson

Attack = Callable[[str, Sequence[str], int], str]


def swap_homophones(text: str, targets: Sequence[str], seed: int) -> str:
    """Write the targets with other characters that sound alike (the phonetics package's)."""
    from memantics.phonetics.harm import disguise
    from memantics.phonetics.reading import Settings

    return disguise(text, targets, seed=seed, settings=Settings(model="dictionary"))


def swap_script(text: str, targets: Sequence[str], seed: int) -> str:
    """Write simplified characters in their traditional form; needs the extra ``phonetics``."""
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
    """Recall on harmful memes whose text was disguised; ``alone`` is without captions."""

    attack: str
    count: int
    recall: float
    low: float
    high: float
    alone: float


@dataclass(frozen=True, slots=True)
class Leakage:
    """Macro-F1 on all memes, and on those without a near-duplicate where it was learnt from.

    ``where`` says in words what that was.
    """

    duplicates: int
    count: int
    everything: float
    clean: float | None
    where: str = "another fold"


@dataclass(frozen=True, slots=True)
class Robustness(Result):
    """The report; ``notes`` say what could not be tried."""

    evasions: tuple[Evasion, ...]
    leakage: Leakage | None
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Recall of harmful memes under each disguise."""
        rows = tuple(
            (
                evasion.attack,
                percent(evasion.recall),
                f"{percent(evasion.low)}–{percent(evasion.high)}",
                percent(evasion.alone),
            )
            for evasion in self.evasions
        )
        columns = ("disguise", ">recall", ">95 %", ">text alone")
        return Table(columns, rows, "Harmful memes found when their text is disguised")

    @property
    def lines(self) -> tuple[str, ...]:
        """What is said beside the table."""
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
    seed: int = 0,
) -> tuple[Evasion, ...]:
    """Disguise what speaks most for harm, as one who knows the detector would.

    The inline text is changed; captions stay, as if they were mined before. ``alone`` takes them
    away from both.
    """
    harmful = [e for e in examples if e.label == 1 and e.text.strip()]
    if not harmful:
        raise InputError("no harmful meme with a text to disguise", hint="give labelled memes")
    chosen = random.Random(seed).sample(harmful, min(most, len(harmful)))
    targets = [pick_targets(detector, example, embedder) for example in chosen]
    found = [_measure(detector, "none", chosen, embedder)]
    for name, attack in ATTACKS.items():
        if name == "traditional script" and find_converter("s2t") is None:
            continue
        disguised = [
            replace(example, text=attack(clean(example.text), names, seed))
            for example, names in zip(chosen, targets, strict=True)
        ]
        found.append(_measure(detector, name, disguised, embedder))
    return tuple(found)


def pick_targets(
    detector: FastDetector, example: Example, embedder: Embedder | None
) -> tuple[str, ...]:
    """The characters of the inline text that speak most for harm."""
    shares = [
        share for share in explain(detector, example, embedder).fields if share.field == "text"
    ]
    if not shares:
        return ()
    ranked = sorted(zip(shares[0].characters, shares[0].text, strict=True), reverse=True)
    letters = dict.fromkeys(text for value, text in ranked if value > 0 and text.isalpha())
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
    """How many memes have a near-duplicate among what was learnt from, and what that is worth.

    With ``folds`` a duplicate in another fold counts; otherwise one among the texts ``seen``.
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
        everything=macro_f1(truth, said, 2),
        clean=macro_f1(truth[kept], said[kept], 2) if kept.any() else None,
        where="the training data" if folds is None else "another fold",
    )
