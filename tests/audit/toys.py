"""A small benchmark whose flaws are known, for audits to find or not to find."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from PIL import Image as Pillow

from memantics.benchmarks.card import Card, OptionCard, SampleCard, TaskCard
from memantics.benchmarks.plugin import AuditHooks
from memantics.benchmarks.registry import DataFacts
from memantics.core.data import Source
from memantics.core.errors import DataError
from memantics.core.records import (
    Field,
    Form,
    Image,
    Item,
    Message,
    Option,
    Outcome,
    Request,
    Score,
)
from memantics.core.task import Task, Unparsed
from memantics.evaluation.audits.benchmark import Inquiry, TrivialModels
from memantics.evaluation.audits.subject import (
    AuditAsking,
    AuditSubject,
    Exam,
    open_exams,
    strip_images,
)
from memantics.metrics.classification import accuracy
from memantics.metrics.interval import clustered_wilson
from memantics.models.baseline import Baseline, open_baseline
from memantics.models.engine import AskSettings

CARD = TaskCard(
    name="qa",
    title="Toy questions",
    main="accuracy",
    baselines=("baseline/random",),
    option=(OptionCard(name="images", help="", default="all", choices=("all", "present")),),
)
BENCHMARK = Card(
    name="toy",
    title="Toy",
    summary="",
    languages=("en",),
    citation="",
    sample=SampleCard(licence="CC0-1.0"),
    task=(CARD,),
)
DATA = DataFacts("release", "0" * 64, 1, "r", "none")
WORDS = ("apple", "bread", "chair", "door", "eagle", "flute", "glass", "house", "ink", "kite")
NO_HOOKS: AuditHooks[Any] = AuditHooks()


@dataclass(frozen=True)
class Flaws:
    """What is wrong with the questions."""

    dead: bool = False
    long_keys: float = 0.0
    first: float = 0.0
    tell: str = ""


NO_FLAWS = Flaws()


def make_items(
    n: int = 120, flaws: Flaws = NO_FLAWS, images: Path | None = None, seed: int = 0
) -> list[Item]:
    """Four-way questions, two for each meme; without flaws nothing tells the key."""
    chance = random.Random(seed)
    items = []
    for number in range(n):
        size = 3 if flaws.dead else 4
        texts = [" ".join(chance.sample(WORDS, 3)) + f" {number}" for _ in range(size)]
        gold = 0 if chance.random() < flaws.first else chance.randrange(size)
        if chance.random() < flaws.long_keys:
            texts[gold] += " and a good deal more"
        if flaws.tell:
            texts[gold] += f" {flaws.tell}"
        options = tuple(Option("ABCD"[i], text) for i, text in enumerate(texts))
        if flaws.dead:
            options += (Option("D", "None of the others"),)
        picture = images / f"{number // 2}.png" if images else Path(f"{number // 2}.png")
        items.append(
            Item(
                id=f"q{number}",
                group=f"m{number // 2}",
                gold="ABCD"[gold],
                form=Form(f"What is shown in number {number}?", (Field("a", "choice", options),)),
                images=(Image(picture),),
            )
        )
    return items


def draw_images(folder: Path, items: Sequence[Item]) -> None:
    for item in items:
        for image in item.images:
            path = folder / image.path.name
            if not path.exists():
                Pillow.new("RGB", (8, 8), "teal").save(path)


def make_task(items: Callable[[], Iterator[Item]]) -> Task:
    return Task(name="toy/qa", items=items, ask=_ask, parse=_parse, score=_score, main="accuracy")


def _ask(item: Item, complaint: str | None) -> Request:
    lines = [f"{o.key}. {o.text}" for o in item.form.fields[0].options]
    text = "\n".join([item.form.question, *lines])
    return Request((Message("user", (*item.images, text)),), item.form)


def _parse(text: str, form: Form) -> str:
    if text not in {o.key for o in form.fields[0].options}:
        raise Unparsed("no letter")
    return text


def _score(outcomes: Sequence[Outcome]) -> tuple[Score, ...]:
    right = [o.status == "answered" and o.value == o.item.gold for o in outcomes]
    span = clustered_wilson(right, [o.item.group for o in outcomes]) or (None, None)
    return (Score("accuracy", accuracy(right), len(right), *span),)


def make_exam(items: Sequence[Item], published: tuple[float, ...] = ()) -> Exam:
    task = make_task(lambda: iter(items))
    bare = tuple(map(strip_images, items))
    texts = {tuple(o.text for o in item.form.fields[0].options) for item in items}
    return Exam(
        card=CARD,
        task=task,
        full=task,
        sighted=any(item.images for item in items),
        split="all",
        items=bare,
        texts=bare,
        seen=(),
        splits={},
        published=published,
        lettered=len(texts) > 1,
    )


def make_subject(
    root: Path, items: Sequence[Item], *, complete: bool = True, hooks: AuditHooks[Any] = NO_HOOKS
) -> AuditSubject:
    """A subject whose reader leaves out memes without an image, as real ones do."""

    def make(card: TaskCard, options: Mapping[str, str], split: str, source: Source) -> Task:
        def walk() -> Iterator[Item]:
            for item in items:
                folder = source.images or root
                paths = [folder / image.path.name for image in item.images]
                if all(path.is_file() for path in paths):
                    yield Item(
                        item.id, item.group, item.gold, item.form, tuple(map(Image, paths)), {}
                    )
                elif options.get("images") != "present":
                    raise DataError(item.group, "its image is not in this copy")

        return make_task(walk)

    return AuditSubject(
        card=BENCHMARK,
        source=Source("release", root, root),
        data=DATA,
        release=items,
        complete=complete,
        make=make,
        hooks=hooks,
    )


def open_exam(subject: AuditSubject) -> Exam:
    exams, gaps = open_exams(subject, [CARD])
    assert not gaps
    return exams[0]


def name_pictures(release: object) -> list[str]:
    assert isinstance(release, list)
    return sorted({image.path.name for item in release for image in item.images})


def trivial() -> TrivialModels:
    return TrivialModels(
        tuple(Baseline(own) for own in ("constant", "longest", "majority", "positive")),
        tuple(open_baseline(f"baseline/random?seed={seed}") for seed in range(3)),
    )


def make_asker(out: Path) -> AuditAsking:
    def watch(title: str, total: int) -> Callable[[object], None]:
        return lambda _: None

    return AuditAsking(BENCHMARK, DATA, out, None, AskSettings(concurrency=4), watch)


def make_inquiry(out: Path, *models: object) -> Inquiry:
    return Inquiry(tuple(models), make_asker(out), None)  # type: ignore[arg-type]
