"""Made-up labelled memes whose flaws are known in kind and size."""

from __future__ import annotations

import csv
import random
from dataclasses import replace
from pathlib import Path

from memantics.core.records import Item
from tests.audit.toys import make_items

GOOD = ("garden", "summer", "friend", "holiday", "music", "cake", "river", "kitten")
BAD = ("insult", "shouting", "kick", "spite", "sneer", "threat", "bully", "mock")
FILL = tuple(f"word{n}" for n in range(400))


def make_memes(
    seed: int = 0,
    size: int = 1000,
    *,
    templates: float = 0.0,
    crawl: float = 0.0,
    flips: float = 0.0,
    content: float = 1.0,
    evidence: float = 1.0,
) -> list[dict[str, str]]:
    """Memes of which words tell the label with chance ``content``.

    ``templates``: chance that a label follows one of twenty templates, of which each has one;
    ``crawl``: that it follows runs of 250 ids; ``flips``: share of labels turned round. With
    ``evidence`` below 1, four words tell the label, each of them rightly with that chance.
    """
    chance = random.Random(seed)
    rows = []
    for number in range(size):
        template = chance.randrange(20)
        label = chance.random() < 0.5
        if chance.random() < templates:
            label = template % 2 == 0
        elif chance.random() < crawl:
            label = number // 250 % 2 == 0
        told = label if chance.random() < content else chance.random() < 0.5
        words = chance.sample(BAD if told else GOOD, 2)
        if evidence < 1:
            lists = (BAD if told == (chance.random() < evidence) else GOOD for _ in range(4))
            words = [chance.choice(held) for held in lists]
        words += chance.sample(FILL, 6)
        if templates:
            words.append(f"template{template}")
        chance.shuffle(words)
        if chance.random() < flips:
            label = not label
        rows.append(
            {
                "id": str(number),
                "text": " ".join(words),
                "label": "harmful" if label else "harmless",
                "template_cluster": f"t{template}",
            }
        )
    return rows


def make_questions(size: int, told: float) -> list[Item]:
    """Four-way questions; in a share of them a word gives the key away."""
    chance = random.Random(1)
    items = []
    for plain in make_items(size):
        item = plain
        (field,) = item.form.fields
        if chance.random() < told:
            options = tuple(
                replace(option, text=f"{option.text} indeed") if option.key == item.gold else option
                for option in field.options
            )
            form = replace(item.form, fields=(replace(field, options=options),))
            item = replace(item, form=form)
        items.append(item)
    return items


def write_table(rows: list[dict[str, str]], path: Path) -> Path:
    """The memes as a CSV."""
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path
