"""Run directories with made-up scores, shaped like the first two families."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from PIL import Image as Pillow
from PIL import ImageDraw
from pydantic import JsonValue

from memantics.core.records import (
    Answer,
    Field,
    Form,
    Image,
    Item,
    Message,
    MessagePart,
    Option,
    Reply,
    Score,
    Status,
)
from memantics.core.rundir import (
    BaselineScores,
    RunFacts,
    RunWriter,
    Scores,
    Usage,
    write_facts,
    write_scores,
)

DIMENSIONS = (
    "Toxicity",
    "Overall Intent",
    "Scene",
    "Emotion",
    "Target Community",
    "Textual Material",
)
WARNING = "Some images or texts of this set are rude."


def make_facts(task: str, model: str, **changes: object) -> RunFacts:
    facts = RunFacts(
        benchmark=task.split("/", maxsplit=1)[0],
        task=task,
        title={"mquest/qa": "M-QUEST questions", "punmemecn/detection": "PunMemeCN detection"}.get(
            task, task
        ),
        main="accuracy",
        unit="items",
        model=model,
        model_note="baseline, not a VLM" if model == "embedded/reader" else "",
        identity={"name": model, "settings": {"temperature": 0}},
        options={"order": "explain"},
        split="all",
        limit=None,
        invalid="wrong",
        prompts={"ask.md": "0f3a" * 16},
        data={"kind": "sample", "checksum": "ab12" * 16, "records": 60},
        warning="",
        version="0.1.0",
        fingerprint=f"{task}-{model}",
        started="2025-01-02T10:00:00.123456+00:00",
        finished="2025-01-02T10:04:00+00:00",
    )
    return replace(facts, **changes)  # type: ignore[arg-type]


def draw_image(path: Path, number: int, side: int = 640) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    hue = (number * 47) % 360
    image = Pillow.new("RGB", (side, side * 3 // 4), f"hsl({hue}, 45%, 62%)")
    pen = ImageDraw.Draw(image)
    pen.ellipse((side * 0.3, side * 0.15, side * 0.7, side * 0.55), fill=f"hsl({hue}, 60%, 88%)")
    pen.rectangle((0, side * 0.6, side, side * 0.75), fill="white")
    pen.text((20, side * 0.65), f"WHEN SAMPLE {number} WORKS", fill="black", font_size=side // 20)
    image.save(path)
    return path


def make_questions(images: Path, count: int = 48) -> list[Item]:
    """Multiple-choice items, two per image."""
    keys = "ABCD"
    made = []
    for number in range(count):
        dimension = DIMENSIONS[number % 2 * (1 + number // 2 % 5)]
        options = tuple(Option(k, f"reading {number}{k.lower()} of this meme") for k in keys)
        sheet = (Field("answer", "choice", options, majority="A"),)
        made.append(
            Item(
                id=f"q{number:03}",
                group=f"m{number // 2:03}",
                gold=keys[number * 7 % 4],
                form=Form(f"What does sample {number} say about {dimension.lower()}?", sheet),
                images=(Image(draw_image(images / f"meme-{number // 2:03}.png", number // 2)),),
                tags={"dimension": dimension, "kind": "T" if dimension == "Toxicity" else "R"},
            )
        )
    return made


def make_puns(images: Path, count: int = 30) -> list[Item]:
    sheet = (
        Field("pun", "choice", (Option("yes", "双关"), Option("no", "没有双关")), positive="yes"),
    )
    return [
        Item(
            id=f"p{number:03}",
            group=f"p{number:03}",
            gold="yes" if number % 2 else "no",
            form=Form(
                "这张图里有谐音双关吗？",
                sheet,
                "zh",
                context={"caption": f"示例数据{number}：好柿成双"},
            ),
            images=(Image(draw_image(images / f"pun-{number:03}.png", 200 + number)),),
            tags={"sentiment": ("positive", "negative", "neutral")[number % 3]},
        )
        for number in range(count)
    ]


def make_answers(items: Sequence[Item], skill: float, seed: int) -> list[Answer]:
    """Answers that are right with a given chance; a few are refused, unparsed or failed."""
    draw = random.Random(seed)
    made = []
    for place, item in enumerate(items):
        keys = [option.key for option in item.form.fields[0].options]
        status: Status = "answered"
        if seed < 90 and place % 17 == seed % 17:
            status = ("refused", "unparsed", "failed")[(place + seed) % 3]
        value = item.gold if draw.random() < skill else draw.choice(keys)
        answered = status == "answered"
        made.append(
            Answer(
                item=item.id,
                attempt=0,
                status=status,
                reply=Reply(
                    f"The picture and its words point one way. Answer: {value}" if answered else "",
                    "Look at the words first, then at the face." if place % 3 == 0 else "",
                    finish="stop",
                    tokens_in=620,
                    tokens_out=24,
                ),
                value=value if answered else None,
                reason="" if answered else f"{status}: a sample of that status",
                seconds=0.8,
            )
        )
    return made


def share(key: str, hits: Sequence[bool], by: str = "", label: str = "") -> Score:
    """A share with its Wilson interval: close enough to what real scores look like."""
    n = len(hits)
    if not n:
        return Score(key, None, 0, by=by, label=label)
    p, z = sum(hits) / n, 1.96
    middle = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
    return Score(key, p, n, middle - half, middle + half, by, label)


def score_questions(items: Sequence[Item], right: Mapping[str, bool]) -> tuple[Score, ...]:
    """Accuracy overall, T, R, group and macro, and by dimension."""

    def hits(kind: str, value: str) -> list[bool]:
        return [right[item.id] for item in items if item.tags[kind] == value]

    parts = [share("accuracy", hits("dimension", d), by="dimension", label=d) for d in DIMENSIONS]
    known = [part.value for part in parts if part.value is not None]
    groups: dict[str, bool] = {}
    for item in items:
        groups[item.group] = groups.get(item.group, True) and right[item.id]
    return (
        share("accuracy", [right[item.id] for item in items]),
        share("accuracy_T", hits("kind", "T")),
        share("accuracy_R", hits("kind", "R")),
        share("group", list(groups.values())),
        Score("macro", sum(known) / len(known), len(known)),
        *(part for part in parts if part.n),
    )


def score_puns(items: Sequence[Item], right: Mapping[str, bool]) -> tuple[Score, ...]:
    """TPR, TNR, F1 and balanced accuracy, the last by sentiment too."""
    yes = [right[item.id] for item in items if item.gold == "yes"]
    no = [right[item.id] for item in items if item.gold == "no"]
    tpr, tnr = share("tpr", yes), share("tnr", no)
    balanced = share("balanced_accuracy", yes + no)
    f1 = 2 * sum(yes) / (2 * sum(yes) + (len(no) - sum(no)) + (len(yes) - sum(yes)))
    moods = [
        share(
            "balanced_accuracy",
            [right[item.id] for item in items if item.tags["sentiment"] == mood],
            by="sentiment",
            label=mood,
        )
        for mood in ("positive", "negative", "neutral")
    ]
    return (balanced, tpr, tnr, Score("f1", f1, len(items), note="positive class: pun"), *moods)


def write_run(
    folder: Path,
    facts: RunFacts,
    items: Sequence[Item],
    answers: Sequence[Answer],
    baselines: tuple[BaselineScores, ...] = (),
    scores: tuple[Score, ...] | None = None,
) -> Path:
    """Write a run as the engine would, with scores to match."""
    with RunWriter(folder, facts) as writer:
        for item in items:
            parts: tuple[MessagePart, ...] = (
                "Look at the meme.",
                *item.images,
                f"{item.form.question}\nReply with a key.",
            )
            writer.add_item(item, (Message("system", ("You read memes.",)), Message("user", parts)))
        for answer in answers:
            writer.add_answer(answer)
    write_facts(folder, facts)
    last = {answer.item: answer for answer in answers}
    counts = dict.fromkeys(("answered", "refused", "unparsed", "failed"), 0)
    for answer in last.values():
        counts[answer.status] += 1
    right = {i.id: i.id in last and last[i.id].value == i.gold for i in items}
    if scores is None:
        scorer = score_puns if facts.benchmark == "punmemecn" else score_questions
        scores = scorer(items, right)
    usage = Usage(
        calls=len(answers),
        cached=3,
        attempts=len(answers),
        tokens_in=sum(a.reply.tokens_in for a in answers),
        tokens_out=sum(a.reply.tokens_out for a in answers),
        seconds=41.5,
        cost=0.0123 if facts.model.startswith("openai/") else None,
    )
    write_scores(folder, Scores(facts.main, counts, scores, baselines, usage))
    return folder


def write_demo(root: Path, warning: str = WARNING) -> list[Path]:
    """Two families, three models each and trivial baselines: what a first demo shows."""
    questions, puns = make_questions(root / "images"), make_puns(root / "images")
    folders = []
    for task, items, main in (
        ("mquest/qa", questions, "accuracy"),
        ("punmemecn/detection", puns, "balanced_accuracy"),
    ):
        guesses = {item.id: place % 4 == 0 for place, item in enumerate(items)}
        scorer = score_puns if task.startswith("pun") else score_questions
        trivial = (
            BaselineScores("baseline/longest", scorer(items, guesses)),
            BaselineScores("baseline/constant", scorer(items, guesses)),
        )
        for place, (model, skill) in enumerate(
            (("openai/sample-vl-72b", 0.8), ("embedded/reader", 0.45), ("baseline/constant", 0.05))
        ):
            facts = make_facts(task, model, main=main, warning=warning if task[0] == "m" else "")
            folder = root / "runs" / f"{task.replace('/', '-')}-{place}"
            answers = make_answers(items, skill, place if place < 2 else 99)
            folders.append(write_run(folder, facts, items, answers, trivial))
    return folders


def answer(item: str, value: JsonValue = "A", **changes: object) -> Answer:
    """One plain answer."""
    made = Answer(item=item, attempt=0, status="answered", reply=Reply(str(value)), value=value)
    return replace(made, **changes)  # type: ignore[arg-type]
