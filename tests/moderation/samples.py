"""Toy memes whose harm is a vegetable: nothing offensive, and easy enough to learn."""

from __future__ import annotations

import random
from dataclasses import replace

from memantics.moderation.examples import Example, Modality, Type

BITTER = {"targeted": "苦瓜", "offence": "酸菜", "sexual": "辣椒", "dispirited": "烂梨"}
SWEET = ("西瓜", "葡萄", "草莓", "樱桃", "香蕉")
FILLER = "今天明天我们他们一起去市场买东西回家做饭看电视听音乐散步聊天"
TYPES: tuple[Type, ...] = ("targeted", "offence", "sexual", "dispirited")
MODALITIES: tuple[Modality, ...] = ("fusion", "text", "image", "both")


def make_examples(count: int = 160, seed: int = 0) -> list[Example]:
    """A third is bitter; ids count up, and the bitter ones come in runs, as in real data."""
    pick = random.Random(seed)
    made = []
    for number in range(count):
        bitter = pick.random() < (0.6 if number % 40 < 20 else 0.15)
        kind: Type = pick.choice(TYPES) if bitter else "none"
        word = BITTER[kind] if bitter else pick.choice(SWEET)
        said = "".join(pick.choice(FILLER) for _ in range(8))
        made.append(
            Example(
                id=str(number + 1),
                text=said[:4] + word + said[4:],
                text_caption=f"这句话说的是{word}",
                image_caption="一张" + "".join(pick.choice(FILLER) for _ in range(4)),
                label=int(bitter),
                type=kind,
                modality=pick.choice(MODALITIES) if bitter else None,
            )
        )
    return made


def shuffle_ids(examples: list[Example], seed: int = 1) -> list[Example]:
    """The same memes in the same order under each other's ids."""
    ids = [example.id for example in examples]
    random.Random(seed).shuffle(ids)
    return [replace(example, id=own) for example, own in zip(examples, ids, strict=True)]
