"""``memantics publish``: a reviewed queue becomes a benchmark that runs, and a data set."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.audit import audit_data
from memantics.build.publish.bundle import Bundle, Facts, Section
from memantics.build.publish.folder import DATA, rewrite_readme, write_folder
from memantics.build.publish.sections import describe_contents, describe_review
from memantics.cli import flags
from memantics.cli.terminal import console, plain, print_json
from memantics.core.data import Source
from memantics.core.errors import InputError
from memantics.core.queue import CARD, ITEMS, VERDICTS
from memantics.core.registry import add_to_shelf, read_shelf
from memantics.core.review import read_review
from memantics.core.writing import Made
from memantics.registry import Benchmark, find_benchmarks
from memantics.registry.publishing import find_writer

Queue = Annotated[
    Path,
    typer.Argument(help="A queue, a build folder that holds one, or a judged folder of memes."),
]
Name = Annotated[str, typer.Option(help="The name under which 'memantics run' finds it.")]
Licence = Annotated[str, typer.Option(help="Licence of the data, such as CC-BY-4.0.")]
Verdicts = Annotated[
    Path | None, typer.Option(help="The review's verdicts. Default: verdicts.jsonl in the queue.")
]
Title = Annotated[str | None, typer.Option(help="Title. Default: the queue's.")]
Summary = Annotated[str, typer.Option(help="One sentence on what it is.")]
Citation = Annotated[str, typer.Option(help="How to cite it.")]
Version = Annotated[str, typer.Option(help="Version of the data.")]
Out = Annotated[Path, typer.Option(help="The benchmark's folder is made in here.")]
Chats = Annotated[
    Path | None, typer.Option(help="Also the chats of this build, where puns are published.")
]
Unreviewed = Annotated[
    bool,
    typer.Option("--unreviewed", help="Let drafts through that nobody judged; the card says so."),
]


def publish(
    queue: Queue,
    name: Name,
    licence: Licence,
    verdicts: Verdicts = None,
    title: Title = None,
    summary: Summary = "",
    citation: Citation = "",
    version: Version = "1.0.0",
    out: Out = Path("published"),
    chats: Chats = None,
    unreviewed: Unreviewed = False,
    as_json: flags.AsJson = False,
) -> None:
    """Publish a reviewed queue: a benchmark folder, Parquet, Croissant and a data card.

    The folder runs at once: memantics run NAME. What people dropped stays out; nothing of the
    queue is changed.
    """
    place = _find_queue(queue, verdicts)
    review = read_review(place, verdicts, unreviewed=unreviewed)
    family, writer = find_writer(review.card.workflow)
    made = writer.write(review)
    if chats is not None:
        if writer.add_chats is None:
            raise InputError("chats go with puns", hint="publish a queue of the workflow pun-form")
        spoken = read_review(_find_queue(chats, None), None, unreviewed=unreviewed)
        made = writer.add_chats(made, spoken)
    facts = Facts(
        name=name,
        title=title or review.card.title,
        summary=summary or f"{review.card.title}: {len(made.memes):,} memes.",
        licence=licence,
        languages=tuple(sorted({meme.language or "en" for meme in made.memes})),
        warning=review.card.warning,
        citation=citation,
        version=version,
    )
    facts.check()
    folder = out / name
    _check_name(name, folder)
    sections = (describe_contents(made), describe_review(review))
    bundle = Bundle(facts, made.memes, made.tables, sections)
    files = write_folder(folder, bundle, made, family.card, partial(_check_data, family))
    add_to_shelf(folder)
    audited = _audit(name)
    rewrite_readme(folder, replace(bundle, sections=(*sections, audited)), files)
    _tell(folder, bundle, made, as_json=as_json)


def _find_queue(folder: Path, verdicts: Path | None) -> Path:
    """The queue itself, or the only one in the folder of a build; else memes with verdicts."""
    found = [own for own in (folder, *sorted(folder.glob("queue*"))) if (own / CARD).is_file()]
    if not found and (verdicts or folder / VERDICTS).is_file():
        return folder
    if not found:
        raise InputError(
            f"{folder}: no queue here",
            hint=f"name a folder with {CARD} and {ITEMS}, or memes with --verdicts",
        )
    if len(found) > 1 and found[0] != folder:
        names = ", ".join(str(own) for own in found)
        raise InputError(f"{folder} holds several queues", hint=f"name one of {names}")
    return found[0]


def _check_name(name: str, folder: Path) -> None:
    """Refuse a name that another benchmark has; publishing again over one's own is fine."""
    if name in find_benchmarks() and folder.resolve() not in read_shelf():
        raise InputError(f"a benchmark {name!r} exists already", hint="choose another --name")


def _check_data(family: Benchmark, folder: Path) -> None:
    """Read what was written before it takes its place: no broken benchmark is left behind."""
    try:
        family.open(Source("release", folder / DATA, folder / DATA / "images"))
    except InputError as error:
        raise InputError(
            f"nothing was published: {family.card.title} cannot read it: {error.what}",
            hint="correct it in the review, or drop it there",
        ) from error


def _audit(name: str) -> Section:
    found = audit_data(name)
    rows = [
        # A family's own checks name the family's task.
        (f"{own.title} ({name}/{own.task.partition('/')[2]})", f"{own.verdict}: {own.meaning}")
        if own.task
        else (own.title, f"{own.verdict}: {own.meaning}")
        for own in found.findings
    ]
    rows += [(f"not checked: {own.check}", own.reason) for own in found.gaps]
    return Section(
        "Audit", ("What the data give away by themselves, before a model is asked.",), tuple(rows)
    )


def _tell(folder: Path, bundle: Bundle, made: Made, *, as_json: bool) -> None:
    counts = {name: len(records) for name, records in bundle.tables.items()}
    left_out = {reason: count for reason, count in made.left_out.items() if count}
    if as_json:
        print_json(
            {
                "folder": str(folder),
                "like": made.like,
                "memes": len(bundle.memes),
                "records": counts,
                "left_out": left_out,
            }
        )
        return
    shown = ", ".join(f"{count:,} {name}" for name, count in counts.items())
    console().print(
        plain(f"{folder}: {len(bundle.memes):,} memes, {shown}, in the format of {made.like}")
    )
    for reason, count in left_out.items():
        console().print(plain(f"left out: {reason}: {count:,}"))
    console().print(plain(f"next: memantics run {bundle.facts.name} --model MODEL"))
