"""``publish``: turn an annotated queue into a runnable benchmark and a data set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.registry import CONFIG, Benchmark, find_benchmarks, find_writer
from memantics.benchmarks.writing import Made
from memantics.construction.publish import datacard
from memantics.construction.publish.folder import DATA, rewrite_readme, write_folder
from memantics.construction.publish.own_workflow import read_form, write_items
from memantics.construction.publish.tables import Bundle, CardFacts, CardSection
from memantics.construction.questions.report import WORKFLOW
from memantics.construction.ratings import RATINGS, Ratings, read_ratings, summarise_ratings
from memantics.core.data import Source
from memantics.core.errors import InputError
from memantics.core.images import load
from memantics.core.parameters import Argument, Flag
from memantics.core.queue import (
    ANNOTATIONS,
    CARD,
    ITEMS,
    Review,
    find_queues,
    read_review,
    read_reviews,
)
from memantics.core.registry import add_to_shelf, read_shelf
from memantics.core.result import Result
from memantics.core.tables import need_parquet
from memantics.evaluation.audit import audit_data
from memantics.understanding.templates import Face, find_kin
from memantics.understanding.vision.hashes import hash_image

UNRATED = "no sample of questions was rated; 'memantics build rate' creates a queue for it"
Queue = Annotated[
    str | Path,
    Argument("A queue, a build folder that contains one, or an annotated folder of memes."),
]
ReviewAnnotations = Annotated[
    str | Path | None, Flag("Annotations of the queue. Default: annotations.jsonl in the queue.")
]
Chats = Annotated[
    str | Path | None, Flag("Build folder whose chats are published too (for pun benchmarks).")
]
Unreviewed = Annotated[bool, Flag("Include drafts that nobody annotated; the data card states it.")]
SplitShares = Annotated[
    str | None, Flag("Train and test proportions, such as 8:2; template clusters are not divided.")
]
RaiFile = Annotated[
    str | Path | None,
    Flag(
        "TOML file with fields on responsible AI, such as dataBiases, for Croissant. Default: none."
    ),
]
WorkflowFile = Annotated[
    str | Path | None,
    Flag("TOML file of your own workflow; each field becomes a task. Default: that of the queue."),
]
Images = Annotated[bool, Flag("Include the images; otherwise only ids, file names and checksums.")]


@dataclass(frozen=True, slots=True)
class PublishedBenchmark(Result):
    """Store a published benchmark: its folder, format, memes and records by table."""

    folder: Path
    format: str
    memes: int
    records: Mapping[str, int]
    skipped: Mapping[str, int]
    rai_missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    def lines(self) -> Iterator[str]:
        """Yield lines of text on the files written and the records left out."""
        shown = ", ".join(f"{count:,} {table}" for table, count in self.records.items())
        yield f"{self.folder}: {self.memes:,} memes, {shown}, in the format of {self.format}"
        yield from (f"left out: {reason}: {count:,}" for reason, count in self.skipped.items())
        if self.rai_missing:
            names = ", ".join(self.rai_missing)
            yield f"croissant.json lacks RAI fields (give --rai FILE): {names}"
        yield from (f"warning: {warning}" for warning in self.warnings)


def publish(
    queue: Queue,
    *,
    name: Annotated[str, Flag("Benchmark name for 'memantics run'.")],
    licence: Annotated[str, Flag("Licence of the data, such as CC-BY-4.0.")],
    annotations: ReviewAnnotations = None,
    title: Annotated[str | None, Flag("Title. Default: the title of the queue.")] = None,
    summary: Annotated[str, Flag("One-sentence description.")] = "",
    citation: Annotated[str, Flag("Citation of the benchmark.")] = "",
    version: Annotated[str, Flag("Version of the data.")] = "1.0.0",
    out: Annotated[str | Path, Flag("Parent folder of the benchmark's folder.")] = "published",
    workflow: WorkflowFile = None,
    chats: Chats = None,
    unreviewed: Unreviewed = False,
    split: SplitShares = None,
    images: Images = True,
    rai: RaiFile = None,
) -> PublishedBenchmark:
    """Publish a reviewed queue: a benchmark folder, Parquet, Croissant and a data card.

    The benchmark runs at once under its name. Items that people dropped are left out; the queue is
    not changed.

    Args:
        queue: A reviewed queue, or the folder of a build.
        name: The name under which ``memantics run`` finds it.
        licence: Licence of the data, such as ``CC-BY-4.0``.
        annotations: Annotations. Default: ``annotations.jsonl`` in the queue.
        title: Title. Default: the queue's.
        summary: One sentence on what it is.
        citation: How to cite it.
        version: Version of the data.
        out: The benchmark's folder is made in here.
        workflow: File of your own workflow. Each of its fields becomes a task; no plugin is needed.
        chats: Chats that become a task of their own.
        unreviewed: Include drafts that nobody annotated; the card says so.
        split: Divide memes into a training and a test part, such as ``8:2``; memes of one template
            cluster stay together.
        images: Include the images. Without them memes are named by id, file name and checksum.
        rai: TOML file with fields of Croissant's RAI vocabulary, such as ``dataBiases``. Fields on
            models and review are filled from the queue.

    Returns:
        The folder, the number of memes and records, and what was left out.

    Raises:
        InputError: The name is taken or not valid, or nothing was reviewed.
        DataError: Annotations do not fit the queue.

    Example:
        >>> # after people have annotated the queue of the build
        >>> mm.publish("builds/mine", name="mine", licence="CC0-1.0").folder  # doctest: +SKIP
    """
    need_parquet()
    judged = Path(annotations) if annotations else None
    review = _read_reviewed(Path(queue), judged, unreviewed)
    spoken = None
    if chats is not None:
        spoken = read_review(_find_queue(Path(chats), None), None, unreviewed=unreviewed)
    if workflow is None:
        base, made = _write(review, spoken, split)
    else:
        _refuse_own(split, chats)
        base, made = write_items(review, read_form(Path(workflow)), licence)
    asked = review.card.workflow == WORKFLOW
    ratings, lacking = _find_ratings(Path(queue), judged) if asked else (None, ())
    facts = CardFacts(
        name=name,
        title=title or review.card.title,
        summary=_summarise(summary or f"{review.card.title}: {len(made.memes):,} memes.", ratings),
        licence=licence,
        languages=tuple(sorted({meme.language for meme in made.memes if meme.language})),
        warning=review.card.warning,
        citation=citation,
        version=version,
        rai={} if rai is None else datacard.read_rai(Path(rai)),
    )
    facts.check()
    folder = Path(out) / name
    _check_name(name, folder)
    writers = datacard.describe_writers(review, *([spoken] if spoken else []))
    found = (datacard.describe_contents(made), writers, datacard.describe_review(review))
    sections = (*found, *_describe_questions(review, ratings))
    bundle = Bundle(facts, made.memes, made.tables, sections, images)
    files = write_folder(folder, bundle, made, base.card, partial(_check_data, base))
    add_to_shelf(folder)
    rewrite_readme(folder, replace(bundle, sections=(*sections, _audit(name))), files)
    counts = {table: len(records) for table, records in bundle.tables.items()}
    skipped = {reason: count for reason, count in made.skipped.items() if count}
    missing = datacard.list_missing_rai(sections, facts.rai)
    return PublishedBenchmark(
        folder, made.format, len(bundle.memes), counts, skipped, missing, lacking
    )


def _read_reviewed(queue: Path, judged: Path | None, unreviewed: bool) -> Review:
    """Return the review of a queue, or of all rounds of a build."""
    rounds = find_queues(queue) if judged is None else []
    if len(rounds) > 1 and _are_rounds(rounds):
        return read_reviews(rounds, unreviewed=unreviewed)
    return read_review(_find_queue(queue, judged), judged, unreviewed=unreviewed)


def _describe_questions(review: Review, ratings: Ratings | None) -> Iterator[CardSection]:
    """Yield what the card says about questions: acceptance, roles of models, rated sample."""
    yield from datacard.describe_acceptance(review)
    if review.card.workflow == WORKFLOW:
        roles = datacard.describe_roles(review)
        yield from (roles,) if roles.rows else ()
        yield datacard.describe_ratings(ratings)


def _find_ratings(queue: Path, judged: Path | None) -> tuple[Ratings | None, tuple[str, ...]]:
    """Return the ratings of the build that a queue belongs to, and what they lack."""
    places = (queue, queue.parent, *([judged.parent.parent] if judged else []))
    for place in places:
        sample = read_ratings(place / RATINGS)
        if sample.rated:
            ratings = summarise_ratings(place / RATINGS)
            return ratings, tuple(ratings.warnings())
        if sample.changed:
            return None, (f"all {sample.changed} rated questions changed since: {UNRATED}",)
    return None, (UNRATED,)


def _summarise(summary: str, ratings: Ratings | None) -> str:
    """Add the proportion of good questions to the summary, which the card and the README show."""
    if ratings is None:
        return summary
    told = datacard.tell_goodness(ratings.rows[0])
    return f"{summary.rstrip()} Questions that raters call good: {told}."


def _refuse_own(split: str | None, chats: str | Path | None) -> None:
    given = "--split" if split is not None else "--chats" if chats is not None else ""
    if given:
        raise InputError(
            f"{given} and --workflow exclude each other", hint=f"omit {given} for your own workflow"
        )


def _write(review: Review, spoken: Review | None, split: str | None) -> tuple[Benchmark, Made]:
    """Return the records in the format of the benchmark whose card names the queue's workflow."""
    base, writer = find_writer(review.card.workflow)
    made = writer.write(review)
    if split is not None:
        if writer.split is None:
            raise InputError(
                f"the format of {base.card.title} has no training split",
                hint="omit --split; it works for harm labels",
            )
        made = writer.split(_find_template_clusters(made), _read_shares(split))
    if spoken is None:
        return base, made
    if writer.add_chats is None:
        raise InputError(
            "chats can only be published together with puns",
            hint="publish a queue of the workflow pun-form",
        )
    return base, writer.add_chats(made, spoken)


def _read_shares(text: str) -> tuple[int, int]:
    """Parse the proportions of the training and the test split.

    >>> _read_shares("8:2")
    (8, 2)
    """
    first, _, second = text.partition(":")
    if not (first.isdecimal() and second.isdecimal() and min(int(first), int(second)) > 0):
        raise InputError(
            f"--split {text} is not a valid pair of proportions", hint="for example --split 8:2"
        )
    return int(first), int(second)


def _find_template_clusters(made: Made) -> Made:
    """Compute template clusters from the images if no collection provided them."""
    if any(meme.template_cluster for meme in made.memes):
        return made
    faces = [
        Face(meme.id, meme.id, hash_image(load(meme.image)), meme.text, 0) for meme in made.memes
    ]
    kin = find_kin(faces)
    memes = tuple(
        replace(meme, template_cluster=kin[meme.id].template_cluster) for meme in made.memes
    )
    return replace(made, memes=memes)


def _are_rounds(queues: Sequence[Path]) -> bool:
    """Return whether queues are rounds of one review: queue, queue-2, queue-3, …"""
    names = ["queue", *(f"queue-{number}" for number in range(2, len(queues) + 1))]
    return [path.name for path in queues] == names


def _find_queue(folder: Path, annotations: Path | None) -> Path:
    """Return the queue, the only queue of a build folder, or a folder of memes with annotations."""
    found = [path for path in (folder, *sorted(folder.glob("queue*"))) if (path / CARD).is_file()]
    if not found and (annotations or folder / ANNOTATIONS).is_file():
        return folder
    if not found:
        raise InputError(
            f"{folder}: no queue found",
            hint=f"give a folder with {CARD} and {ITEMS}, or memes with --annotations",
        )
    if len(found) > 1 and found[0] != folder:
        names = ", ".join(str(path) for path in found)
        raise InputError(f"{folder} contains several queues", hint=f"give one of {names}")
    return found[0]


def _check_name(name: str, folder: Path) -> None:
    """Raise if another benchmark has the name; a published benchmark can be replaced."""
    if name in find_benchmarks() and folder.resolve() not in read_shelf():
        raise InputError(f"a benchmark named {name!r} already exists", hint="choose another --name")


def _check_data(base: Benchmark, folder: Path) -> None:
    """Read the new data before they replace the old folder, so that no broken benchmark remains."""
    config = folder / DATA / CONFIG
    reader = replace(base, dataset_config=config) if config.is_file() else base
    try:
        reader.open(Source("release", folder / DATA, folder / DATA / "images", published=True))
    except InputError as error:
        raise InputError(
            f"nothing was published: {base.card.title} cannot read the data: {error.what}",
            hint="correct or drop the item in the review",
        ) from error


def _audit(name: str) -> CardSection:
    found = audit_data(name)
    rows = [
        # Findings name the task of the format's benchmark; show the published name instead.
        (
            f"{finding.title} ({name}/{finding.task.partition('/')[2]})",
            f"{finding.verdict}: {finding.meaning}",
        )
        if finding.task
        else (finding.title, f"{finding.verdict}: {finding.meaning}")
        for finding in found.findings
    ]
    # Tasks with the same gap are one row.
    rows += dict.fromkeys((f"not checked: {gap.check}", gap.reason) for gap in found.gaps)
    return CardSection(
        "Audit", ("Findings about the data themselves, without a model.",), tuple(rows)
    )
