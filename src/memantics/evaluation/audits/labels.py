"""Audit labels and runs: group-disjoint splits, label errors, and inputs that answers depend on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.benchmarks.card import Card, SampleCard, TaskCard
from memantics.benchmarks.factories import hits
from memantics.benchmarks.registry import Benchmark, DataFacts
from memantics.core.data import DataKind, GroupKind
from memantics.core.errors import InputError
from memantics.core.files import write_lines
from memantics.core.finding import Finding, Gap
from memantics.core.records import Outcome, Score
from memantics.core.rundir import read_facts
from memantics.core.tables import TABLE_ENDINGS
from memantics.evaluation.audits.benchmark import AuditNotes
from memantics.evaluation.audits.blind import (
    HEART,
    PICTURE_ALONE,
    WORDS_ALONE,
    judge_contamination,
    judge_needs,
)
from memantics.evaluation.audits.metadata import judge_metadata, list_names, read_source
from memantics.evaluation.audits.pictures import (
    PictureFacts,
    find_shared_images,
    part_by_image,
    read_pictures,
)
from memantics.evaluation.compare import open_run
from memantics.moderation import label_errors as mislabels
from memantics.moderation.classifier import find_labelled
from memantics.moderation.examples import Loaded, split_random
from memantics.moderation.held_out import (
    HeldOutVerdicts,
    RunAnswers,
    draw_memes,
    judge_held_out,
    list_strata,
    weigh_answers,
)
from memantics.moderation.labels import FEWEST_MEMBERS
from memantics.moderation.resplit import (
    FOLDS,
    Draft,
    Grouping,
    find_copies,
    group_memes,
    judge_groups,
    judge_resplit,
    make_split,
    score_runs,
    settle_verdicts,
)

MOST = 12_000  # Maximum number of memes for pairwise comparison.
_FEWEST = 40
_RANDOM = "random"
_AGAIN = "random, again"


@dataclass(frozen=True, slots=True)
class LabelWishes:
    """Settings of a label audit.

    ``folder`` receives the files; ``warning`` is shown with the annotation queue. ``runs`` are run
    directories whose answers serve as additional predictions. ``metadata`` adds the checks of
    metadata and of images across splits.
    """

    kinds: tuple[GroupKind, ...]
    doubts: bool
    folder: Path
    reviewed: Path | None = None
    warning: str = ""
    runs: tuple[Path, ...] = ()
    metadata: bool = False


def is_table(name: str) -> bool:
    """Whether a name denotes a column of a table, such as ``memes.csv/label``."""
    place = Path(name.rpartition("/")[0])
    return place.suffix.lower() in TABLE_ENDINGS and place.is_file()


def choose_label(benchmark: Benchmark, wanted: str) -> str:
    """Choose the label with this name, else the first with one value per meme; else ""."""
    known = benchmark.plugin.labels if benchmark.runnable else {}
    if wanted in known:
        return wanted
    return next((name for name, source in known.items() if not source.several), "")


def describe_table(name: str) -> tuple[Card, DataFacts]:
    """Make the dataset card and the facts for a column of a user's table."""
    loaded = find_labelled(name)
    stem = re.sub(r"[^a-z0-9]+", "_", loaded.labels.name.lower()).strip("_")
    languages = [name for name in loaded.list_languages() if name in ("en", "zh")]
    label = re.sub(r"[^a-z0-9]+", "_", loaded.topic.lower()).strip("_") or "label"
    card = Card.model_validate(
        {
            "name": f"t_{stem}",
            "title": loaded.labels.name,
            "summary": "a table of labelled memes",
            "languages": languages or ["en"],
            "citation": "",
            "sample": SampleCard(licence="none"),
            "task": (TaskCard(name=f"l_{label}", title="label", main="macro_f1", baselines=()),),
        }
    )
    size = len(loaded.examples)
    return card, DataFacts("release", loaded.checksum, size, "", "not stated")


def audit_label(name: str, kind: DataKind | None, wishes: LabelWishes) -> AuditNotes:
    """Audit one label, ``NAME/LABEL``: groups of memes, group-disjoint splits, label errors."""
    notes = AuditNotes()
    data = find_labelled(name, data=kind)
    if data.labels.several:
        raise InputError(
            f"{name} allows several labels per meme, which the label audit does not support",
            hint="audit a label with one value per meme",
        )
    if len(data.examples) < _FEWEST or min(data.counts.values()) < FEWEST_MEMBERS:
        reason = f"{len(data.examples)} memes are too few; {_FEWEST} and five per class are needed"
        notes.gaps.append(Gap(name, "groups, group-disjoint splits, label errors", reason))
        return notes
    if len(data.examples) > MOST:
        reason = f"an even sample of {MOST:,} of {len(data.examples):,} memes was audited"
        notes.gaps.append(Gap(name, "all memes", reason))
        data = draw_memes(data, MOST)
    groupings = _group(data, wishes, notes)
    held = judge_held_out(
        data,
        {
            _RANDOM: split_random(list_strata(data), FOLDS),
            _AGAIN: split_random(list_strata(data), FOLDS, seed=1),
            **{by: grouping.folds for by, grouping in groupings.items()},
        },
    )
    runs = _read_runs(data, wishes.runs, notes)
    table = Path(name.rpartition("/")[0]) if is_table(name) else None
    pictures = read_pictures(data) if wishes.metadata or wishes.doubts else {}
    drafts = list(_draft_splits(data, groupings, held, wishes, notes))
    drafts = [_add_runs(draft, data, groupings, runs) for draft in drafts]
    if wishes.doubts:
        texts, judged = groupings["text"], held["text"]
        joined = (*judged.judges, *(weigh_answers(data, run, texts.folds) for run in runs))
        copies = _find_copies(data, table, pictures)
        drafts += _draft_label_issues(
            data, texts, replace(judged, judges=joined), copies, wishes, notes
        )
    shared: list[Finding] = []
    if wishes.metadata:
        drafts += judge_metadata(data, table, pictures)
        shared, gaps = find_shared_images(data, pictures)
        notes.gaps += gaps
    found = [*settle_verdicts(drafts), *shared]
    notes.findings = [replace(finding, task=name) for finding in found]
    if wishes.reviewed is not None:
        notes.findings += mislabels.judge_reviews(
            data, groupings["text"], held["text"], wishes.reviewed
        )
    return notes


def _read_runs(data: Loaded, folders: Sequence[Path], notes: AuditNotes) -> list[RunAnswers]:
    """Read the answers of unperturbed runs about these memes; give a reason for other runs."""
    known = {example.id for example in data.examples}
    runs = []
    for folder in folders:
        facts = read_facts(folder)
        if facts.perturbation:
            continue
        held: dict[str, list[Outcome]] = {}
        for outcome in open_run(folder).outcomes:
            item = outcome.item
            named = next((name for name in (item.id, item.group) if name in known), "")
            held.setdefault(named, []).append(outcome)
        held.pop("", None)
        if not held:
            name = data.labels.name
            notes.gaps.append(
                Gap(name, f"run {folder.name}", "it has no answers about these memes")
            )
            continue
        once = {name: found[0] for name, found in held.items() if len(found) == 1}
        said = {name: str(o.value) for name, o in once.items() if o.status == "answered"}
        ended = [(name, outcome) for name, found in held.items() for outcome in found]
        marks = hits([outcome for _, outcome in ended])
        right = [(name, mark) for (name, _), mark in zip(ended, marks, strict=True)]
        runs.append(RunAnswers(facts.model, said, right))
    return runs


def _add_runs(
    draft: Draft, data: Loaded, groupings: Mapping[str, Grouping], runs: Sequence[RunAnswers]
) -> Draft:
    """Add the scores of runs to the finding on the drop under a group-disjoint split."""
    what, _, by = draft.finding.key.partition(".")
    if what != "resplit" or not runs:
        return draft
    rows = (*draft.finding.rows, *score_runs(data, groupings[by], runs))
    return draft._replace(finding=replace(draft.finding, rows=rows))


def _group(data: Loaded, wishes: LabelWishes, notes: AuditNotes) -> dict[str, Grouping]:
    """Group memes by every property that the data have; always by text, to find copies."""
    found: dict[str, Grouping] = {}
    needs_texts = wishes.doubts or wishes.reviewed is not None
    for by in dict.fromkeys((*wishes.kinds, *(("text",) if needs_texts else ()))):
        try:
            found[by] = group_memes(data, by)
        except InputError as error:
            if len(wishes.kinds) == 1:
                raise
            notes.gaps.append(Gap(data.labels.name, f"split by {by}", error.what, error.hint))
    return found


def _draft_splits(
    data: Loaded,
    groupings: Mapping[str, Grouping],
    held: Mapping[str, HeldOutVerdicts],
    wishes: LabelWishes,
    notes: AuditNotes,
) -> Sequence[Draft]:
    drafts = []
    for by in wishes.kinds:
        if by not in groupings:
            continue
        grouping = groupings[by]
        # A text that predicts its label is not a flaw, but copies of the text in the test set are.
        told = None if by == "text" else judge_groups(data, grouping)
        drafts += [told] if told else []
        drafts.append(judge_resplit(data, grouping, held[_RANDOM], held[_AGAIN], held[by]))
        path = wishes.folder / f"split-{by}.json"
        notes.files[f"split by {by}"] = make_split(data, grouping).save(path)
    return drafts


def _find_copies(
    data: Loaded, table: Path | None, pictures: Mapping[int, PictureFacts]
) -> tuple[str, ...]:
    """Group memes with nearly the same text and the same image."""
    names = list_names(data, read_source(data, table))
    return part_by_image(data, find_copies(data), pictures, names)


def _draft_label_issues(
    data: Loaded,
    texts: Grouping,
    held: HeldOutVerdicts,
    copies: Sequence[str],
    wishes: LabelWishes,
    notes: AuditNotes,
) -> list[Draft]:
    noise, gap = mislabels.judge_noise(data, texts, held)
    if noise is None:
        notes.gaps.append(gap)
    doubts = mislabels.rank_label_issues(data, copies, held.mean)
    if doubts:
        folder = wishes.folder / "review"
        mislabels.queue_label_issues(data, doubts, folder, warning=wishes.warning)
        notes.files["review queue"] = folder
        notes.files["likely label errors"] = write_lines(
            wishes.folder / "label_issues.jsonl", doubts
        )
    return [draft for draft in (mislabels.judge_copies(data, copies), noise) if draft is not None]


# Findings from perturbed runs of one task, one finding per model.


def audit_perturbed(folders: Sequence[Path]) -> tuple[list[Finding], list[Gap]]:
    """Report which inputs each model's answers depend on, from perturbed runs."""
    plain: dict[tuple[str, str], Sequence[Outcome]] = {}
    perturbed: dict[tuple[str, str], dict[str, Sequence[Outcome]]] = {}
    recalled: dict[tuple[str, str], dict[str, Score]] = {}
    for folder in folders:
        run = open_run(folder)
        facts, outcomes, key = run.facts, run.outcomes, (run.task.name, run.facts.model)
        if not facts.perturbation:
            plain[key] = outcomes
        elif facts.perturbation.startswith("contamination="):
            scores = {score.key: score for score in run.task.score(outcomes) if not score.by}
            if "recalled" in scores:
                recalled.setdefault(key, {})[facts.perturbation] = scores["recalled"]
        else:
            perturbed.setdefault(key, {})[facts.perturbation] = outcomes
    findings, gaps = [], []
    for key in dict.fromkeys((*plain, *perturbed, *recalled)):
        changed = perturbed.get(key, {})
        found = judge_needs(*key, plain[key], changed) if key in plain else None
        learnt = judge_contamination(*key, recalled.get(key, {}), changed.get("meme=removed", ()))
        findings += [finding for finding in (found, learnt) if finding is not None]
        if found is None:
            need = f"a plain run, one with {WORDS_ALONE} and one with {PICTURE_ALONE}"
            gaps.append(
                Gap(key[0], f"items that need image and text, {key[1]}", f"this check needs {need}")
            )
        if learnt is None:
            asked = " or ".join(HEART)
            gaps.append(
                Gap(key[0], f"contamination, {key[1]}", f"this check needs a run with {asked}")
            )
    if not folders:
        hint = "run memantics perturb TASK -m MODEL --perturb contamination=caption; add --run DIR"
        gaps.append(
            Gap("", "items that need image and text, contamination", "no run was given", hint)
        )
    return findings, gaps
