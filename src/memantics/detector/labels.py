"""Labelled memes as what is learnt from: one label each or several, rare ones put together."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence

from memantics.core.data import Skip
from memantics.core.errors import InputError
from memantics.core.labelled import LabelledMeme, name_group
from memantics.detector.examples import Example, LabelSet, Loaded

# Memes of a class: rarer ones cannot be held out and learnt at once. In a large set a class needs
# a share of the memes, too (less where several can hold: each is a question of its own).
FEWEST_MEMBERS = 5
_FEWEST_SHARE = {False: 0.03, True: 0.01}
OTHER = "other"


def gather_examples(
    memes: Iterable[LabelledMeme],
    name: str,
    *,
    several: bool = False,
    classes: Sequence[str] | None = None,
) -> Loaded:
    """Memes as examples with one label each, or with several.

    Without ``classes`` the labels with too few memes become ``other``, and those memes are left
    out where ``other`` has too few as well. With ``classes`` (of an expert that is to be judged),
    any other label is ``other`` where that is a class, else the meme is left out.
    """
    listed, skips = _keep_labelled(memes, name, several=several)
    counts = Counter(label for meme in listed for label in meme.labels)
    fewest = max(FEWEST_MEMBERS, math.ceil(_FEWEST_SHARE[several] * len(listed)))
    known = set(classes or (text for text, count in counts.items() if count >= fewest))
    rare = sum(count for text, count in counts.items() if text not in known)
    keeps_other = OTHER in known or (classes is None and rare >= fewest and not several)
    kept: list[tuple[LabelledMeme, tuple[str, ...]]] = []
    for meme in listed:
        gold = tuple(text for text in meme.labels if text in known)
        if not several and not gold and keeps_other:
            gold = (OTHER,)
        if gold or several:
            kept.append((meme, gold))
        else:
            skips.append(Skip(name, meme.id, f"too few memes are {meme.labels[0]}"))
    if not kept:
        raise InputError(f"{name}: no meme has a label that can be learnt", hint="give more memes")
    found = set(classes or ()) | {text for _, gold in kept for text in gold}
    ordered = (
        tuple(classes) if classes else tuple(sorted(found, key=lambda key: (-counts[key], key)))
    )
    notes = [f"{len(skips):,} memes were left out"] if skips else []
    if keeps_other and classes is None and rare:
        notes.append(f"{rare:,} memes with labels of fewer than {fewest} memes are {OTHER}")
    return Loaded(
        name,
        tuple(
            Example(meme.id, meme.text, meme.text_caption, meme.image_caption, meme.image)
            for meme, _ in kept
        ),
        tuple(skips),
        tuple(notes),
        labels=LabelSet(name, ordered, several),
        gold=tuple(gold for _, gold in kept),
        groups=tuple(meme.group or name_group(meme.text) or meme.id for meme, _ in kept),
        memes=tuple(meme for meme, _ in kept),
    )


def _keep_labelled(
    memes: Iterable[LabelledMeme], name: str, *, several: bool
) -> tuple[list[LabelledMeme], list[Skip]]:
    kept: list[LabelledMeme] = []
    skips: list[Skip] = []
    for meme in memes:
        said = meme.text + meme.text_caption + meme.image_caption
        if not said.strip():
            skips.append(Skip(name, meme.id, "no text"))
        elif not several and len(meme.labels) != 1:
            skips.append(Skip(name, meme.id, f"has {len(meme.labels)} labels"))
        else:
            kept.append(meme)
    return kept, skips
