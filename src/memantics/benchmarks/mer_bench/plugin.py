"""The MER-Bench plugin: task ``judge`` (rate a reappraised meme), and its label sources."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import cast

from memantics.benchmarks.mer_bench import judgement, views
from memantics.benchmarks.mer_bench import statistics as audit
from memantics.benchmarks.mer_bench.humans import export_outputs
from memantics.benchmarks.mer_bench.judgement import CheckLevel, Rationale
from memantics.benchmarks.mer_bench.load import ReappraisalRelease, ReappraisalRow, open_release
from memantics.benchmarks.mer_bench.official import official_prompts
from memantics.benchmarks.mer_bench.scoring import InvalidScore, Rules, mark, score
from memantics.benchmarks.mer_bench.statistics import statistics, survey
from memantics.benchmarks.mer_bench.views import View
from memantics.benchmarks.plugin import AuditHooks, BenchmarkPlugin, TaskSetup
from memantics.core.data import Source, open_once
from memantics.core.errors import DataError
from memantics.core.labels import LabelledMeme, LabelSource
from memantics.core.prompt import Prompt, enclose
from memantics.core.records import Field, Form, Image, Item, Message, MessagePart, Request, Sampling
from memantics.core.task import ItemWalk, Task
from memantics.metrics.reappraisal import Combine, Formula

QUESTION = "How well was the source meme turned into one that expresses the target feeling?"
REFERENCES = {
    "on": ("source_caption", "target_caption", "edit_instruction"),
    "source": ("source_caption",),
    "off": (),
}


def make(setup: TaskSetup) -> Task:
    """Build the task ``judge``."""
    chosen, prompts = setup.options, setup.prompts
    sampling = Sampling(
        temperature=0.0, max_tokens=setup.read_whole("max_tokens", 0, 10**9) or None
    )
    seed = setup.read_whole("seed", 0, 10**9)
    rationale = cast("Rationale", chosen["rationale"])
    checks = cast("CheckLevel", chosen["checks"])
    rules = Rules(
        Formula(
            cast("Combine", chosen["rfs"]),
            setup.read_number("alpha", 0.01, 100),
            setup.read_number("floor", 1e-9, 0.2),
        ),
        cast("InvalidScore", setup.option("after_retries")),
    )
    task = setup.make(
        items=lambda: _items(setup, seed),
        ask=lambda item, complaint: _ask(prompts, chosen, sampling, item, complaint),
        parse=lambda text, form: judgement.judge(
            text, form.context["target_emotion"], rationale, checks
        ).dump(),
        score=lambda outcomes: score(outcomes, rules),
        used=prompts.values(),
    )
    # The paper's tables are means over runs; if each edit is judged once, there are no runs.
    main = task.main if chosen["view"] == "all" else f"{task.main}_run"
    task = replace(task, main=main, marks=lambda outcomes: mark(outcomes, rules), kinds=("editor",))
    return _look(task, setup)


def _look(task: Task, setup: TaskSetup) -> Task:
    """Return the task with layout checks, whose results become tags of the items.

    Images are opened only when an item is created, so skipped items cost nothing.
    """
    wanted = setup.options["layout"]
    if wanted == "off":
        return task
    plain, known = task.items, dict[tuple[Path, Path], Mapping[str, str]]()

    def walk(has_ended: Callable[[str], bool]) -> Iterator[Item | str]:
        for item in plain():
            if has_ended(item.id):
                yield item.id
                continue
            source, edited = item.images[0].path, item.images[1].path
            if not (source.is_file() and edited.is_file()):  # imported answers need no images
                known[source, edited] = {}
            if (source, edited) not in known:
                check = setup.services.layout(wanted == "captions")
                known[source, edited] = check(source, edited)
            yield replace(item, tags={**item.tags, **known[source, edited]})

    return replace(task, items=ItemWalk(walk, lambda: sum(1 for _ in plain()), plain))


@cache
def _filter(source: Source, wanted: str) -> tuple[ReappraisalRelease, views.KeptMemes]:
    """Return the memes that can be judged; cached, since every image of the release is decoded."""
    release = open_once(open_release, source)
    return release, views.keep_judgeable(release, views.choose_editors(release, wanted))


def _items(setup: TaskSetup, seed: int) -> Iterator[Item]:
    chosen = setup.options
    release, kept = _filter(setup.need_source(), chosen["editors"])
    targets = Counter(row.target_emotion for row in kept.rows)
    fields = judgement.list_fields(min(targets, key=lambda target: (-targets[target], target)))
    facts = {
        "view": chosen["view"],
        "kept": f"{len(kept.rows)}/{kept.total}",
        "left out": "; ".join(f"{reason} {count}" for reason, count in kept.skipped.items()),
    }
    for pair in views.draw_pairs(kept, cast("View", chosen["view"]), seed):
        yield _item(release, pair, fields, chosen, facts)


def _item(
    release: ReappraisalRelease,
    pair: views.EditToJudge,
    fields: tuple[Field, ...],
    chosen: Mapping[str, str],
    facts: Mapping[str, str],
) -> Item:
    row = pair.row
    shown, edited = row.image, release.find_edited(pair.editor, row)
    if release.source.unseen:
        shown, edited = shown or Path(row.id), edited or Path(pair.editor, row.id)
    if shown is None or edited is None:
        raise DataError(
            row.id, "its images were removed during the run", hint="run the command again"
        )
    # The authors send caption and plan as in the index file, including quotes.
    raw = _is_official(chosen)
    texts = {
        "source_caption": row.caption,
        "target_caption": row.written.strip() if raw else row.rewritten,
        "edit_instruction": row.planned.strip() if raw else row.plan,
    }
    context: dict[str, str] = {
        "source_emotion": row.source_emotion,
        "target_emotion": row.target_emotion,
    }
    context |= {n: texts[n] for n in REFERENCES[chosen["references"]] if texts[n]}
    runs = {
        f"runs {table}".strip(): " ".join(map(str, drawn_in))
        for table, drawn_in in pair.runs.items()
    }
    return Item(
        id=f"{pair.editor}/{row.id}",
        group=row.id,
        gold=judgement.perfect(row.target_emotion).dump(),
        form=Form(QUESTION, fields, reply="json", context=context),
        images=(Image(shown), Image(edited)),
        tags={
            "editor": pair.editor,
            "source": row.source_emotion,
            "target": row.target_emotion,
            **{factor: views.level_of(row, factor) for factor in views.FACTORS},
            **runs,
            **facts,
        },
    )


def _ask(
    prompts: Mapping[str, Prompt],
    chosen: Mapping[str, str],
    sampling: Sampling,
    item: Item,
    complaint: str | None,
) -> Request:
    rationale = cast("Rationale", chosen["rationale"])
    context = item.form.context
    told = {name: context[name] for name in REFERENCES["on"] if name in context}
    if not _is_official(chosen):  # the authors send captions unchanged
        told = {name: enclose(name.replace("_", " "), text) for name, text in told.items()}
    given = [prompts[name].fill(text=text) for name, text in told.items()]
    if given and "references" in prompts:  # only the authors' prompts have a heading
        given = [prompts["references"].fill(blocks="\n\n".join(given))]
    text = prompts["judge"].fill(
        source_emotion=context["source_emotion"],
        target_emotion=context["target_emotion"],
        references="\n\n".join(["", *given]),
        shape=judgement.show_shape(rationale),
    )
    if complaint is not None:
        text += "\n\n" + prompts["again"].fill(complaint=complaint)
    pictures: tuple[MessagePart, ...] = (
        prompts["source_image"].text,
        item.images[0],
        prompts["edited_image"].text,
        item.images[1],
    )
    parts = (*pictures, text) if chosen["placement"] == "VF" else (text, *pictures)
    system = prompts["rules"].fill(labels=", ".join(judgement.EMOTIONS))
    return Request(
        messages=(Message("system", (system,)), Message("user", parts)),
        form=item.form,
        sampling=sampling,
        schema=judgement.make_schema(rationale, nullable=_is_official(chosen)),
    )


def _is_official(chosen: Mapping[str, str]) -> bool:
    return chosen.get("wording") == "official"


# Labels for classifiers, from the caption alone. The index file also describes each image, but the
# authors of these descriptions knew the emotion, so they would reveal the label.


def _read(
    label_of: Callable[[ReappraisalRow], str],
) -> Callable[[ReappraisalRelease], Iterator[LabelledMeme]]:
    def read(release: ReappraisalRelease) -> Iterator[LabelledMeme]:
        for row in release.rows:
            yield LabelledMeme(row.id, row.caption, (label_of(row),), image=row.image)

    return read


LABELS: Mapping[str, LabelSource[ReappraisalRelease]] = {
    "emotion": LabelSource(
        "emotion of the meme: angry, sad, tense or bored",
        _read(lambda row: row.source_emotion),
        topic="emotion",
    ),
    "polarity": LabelSource(
        "negative, neutral or positive", _read(lambda row: row.polarity.lower()), topic="polarity"
    ),
}


PLUGIN = BenchmarkPlugin(
    open_release=open_release,
    survey=survey,
    statistics=statistics,
    make_task=make,
    labels=LABELS,
    official_prompts=official_prompts,
    human_ratings=export_outputs,
    audit=AuditHooks(findings=audit.findings, rated=audit.RATED),
)
