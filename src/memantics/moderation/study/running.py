"""Run a study (every variant on the same splits, tested once), and compute its metrics.

Finished trainings are not repeated. Metrics are means over seeds with confidence intervals over
memes. Variants are compared by a jackknife over memes and a t-test over seeds.
"""

from __future__ import annotations

import hashlib
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np
import orjson
from pydantic import JsonValue, TypeAdapter, ValidationError

from memantics.core.data import dump_json
from memantics.core.errors import InputError, StoreError, UnknownName, first_fault
from memantics.core.files import read_regular, replace_file
from memantics.core.records import Score
from memantics.core.result import Result, Table, to_plain
from memantics.metrics.classification import (
    f1_by_class,
    macro_f1,
    macro_precision,
    macro_recall,
    split_confusions,
)
from memantics.metrics.comparison import correct_known, welch_t_test
from memantics.metrics.interval import bootstrap
from memantics.metrics.paired import compare_left_out
from memantics.metrics.rounding import Floats, Ints
from memantics.moderation.evaluation import percent
from memantics.moderation.examples import (
    LABELS,
    MODALITIES,
    Example,
    Loaded,
    keep_typed,
    need_labels,
)
from memantics.moderation.fast import train
from memantics.moderation.heads import find_preset
from memantics.moderation.judges import open_embedder
from memantics.moderation.neural.encoding import classes_of, gold_places
from memantics.moderation.neural.feeding import hold_out, split_rows
from memantics.moderation.neural.seeds import PREDICTIONS, SeedPlan, train_neural
from memantics.moderation.neural.settings import (
    Pooling,
    ProgressLog,
    Training,
    TrainingTarget,
    check_training,
)
from memantics.moderation.study.variants import (
    StudyEncoders,
    Variant,
    make_backbones,
    make_shape,
    make_training,
    read_variant,
)

_RESAMPLES = 2000
STUDY = "study.json"


@dataclass(frozen=True, slots=True)
class VariantVerdicts:
    """Predictions of a variant for the test memes: one row of class indices per seed."""

    memes: tuple[str, ...]
    gold: Ints
    said: Ints
    classes: tuple[str, ...]

    def keep(self, memes: Sequence[str]) -> VariantVerdicts:
        """Select memes in the given order."""
        rows = {meme: row for row, meme in enumerate(self.memes)}
        places = [rows[meme] for meme in memes]
        return VariantVerdicts(tuple(memes), self.gold[places], self.said[:, places], self.classes)

    @property
    def cells(self) -> Floats:
        """Return per meme and seed the index of its cell in the confusion matrix."""
        size = len(self.classes)
        marks = np.eye(size * size)[self.gold * size + self.said]
        return np.asarray(marks.transpose(1, 0, 2).reshape(len(self.memes), -1), float)

    def count(self, sums: Floats) -> Floats:
        """Compute confusion matrices: resamples × seeds × gold × predicted."""
        size = len(self.classes)
        return sums.reshape(len(sums), -1, size, size)


ScoreFunction = Callable[[Floats], Floats]


def list_metrics(classes: Sequence[str]) -> Mapping[tuple[str, str, str], ScoreFunction]:
    """List the metrics of the ToxiCN MM table, by key, breakdown and part; one value per seed."""
    metrics: dict[tuple[str, str, str], ScoreFunction] = {
        ("macro_precision", "", ""): lambda tables: macro_precision(*split_confusions(tables)),
        ("macro_recall", "", ""): lambda tables: macro_recall(*split_confusions(tables)),
        ("macro_f1", "", ""): _macro_f1,
    }
    if len(classes) == 2:
        metrics["f1_harmful", "", ""] = partial(_f1_of, 1)
        return metrics
    for place, name in enumerate(classes):
        metrics["f1", "type", name] = partial(_f1_of, place)
    return metrics


def _macro_f1(tables: Floats) -> Floats:
    return macro_f1(*split_confusions(tables))


def _f1_of(place: int, tables: Floats) -> Floats:
    return np.asarray(f1_by_class(*split_confusions(tables))[..., place], float)


def score_sheet(sheet: VariantVerdicts, examples: Mapping[str, Example]) -> tuple[Score, ...]:
    """Compute means over seeds with confidence intervals over memes.

    The note of each metric gives the standard deviation over seeds.
    """
    cells = sheet.cells
    whole = sheet.count(cells.sum(0)[None])
    scores = []
    for (key, by, label), compute in list_metrics(sheet.classes).items():
        span = bootstrap(cells, _average(sheet, compute), resamples=_RESAMPLES)
        by_seed = compute(whole)[0].tolist()
        scores.append(_score((key, by, label), by_seed, len(sheet.memes), span))
    if len(sheet.classes) == 2:
        scores += _score_modalities(sheet, examples)
    return tuple(scores)


def _average(sheet: VariantVerdicts, compute: ScoreFunction) -> Callable[[Floats], Floats]:
    return lambda sums: np.asarray(compute(sheet.count(sums)).mean(-1), float)


def _score(
    name: tuple[str, str, str],
    by_seed: Sequence[float],
    n: int,
    span: tuple[float, float] | None,
) -> Score:
    low, high = span or (None, None)
    key, by, label = name
    known = [value for value in by_seed if not math.isnan(value)]
    mean = statistics.fmean(known) if known else None
    note = say_spread(known) if known else "does not occur"
    return Score(key, mean, n, low, high, by=by, label=label, note=note)


def say_spread(by_seed: Sequence[float]) -> str:
    """Describe the standard deviation over seeds, in percentage points.

    >>> say_spread([0.70, 0.72]), say_spread([0.7])
    ('± 1.41 over 2 seeds', 'one seed')
    """
    if len(by_seed) < 2:
        return "one seed"
    return f"± {100 * statistics.stdev(by_seed):.2f} over {len(by_seed)} seeds"


def _score_modalities(sheet: VariantVerdicts, examples: Mapping[str, Example]) -> list[Score]:
    """Compute recall of harmful memes by modality, as in Figure C1 of the ToxiCN MM paper."""
    found = []
    for modality in MODALITIES:
        rows = [
            row
            for row, meme in enumerate(sheet.memes)
            if sheet.gold[row] == 1 and examples[meme].modality == modality
        ]
        if rows:
            hits = (sheet.said[:, rows] == 1).astype(float)
            span = bootstrap(
                np.column_stack([hits.mean(0), np.ones(len(rows))]),
                lambda sums: np.asarray(sums[:, 0] / sums[:, 1], float),
                resamples=_RESAMPLES,
            )
            name = ("accuracy", "modality", modality)
            found.append(_score(name, hits.mean(1).tolist(), len(rows), span))
    return found


@dataclass(frozen=True, slots=True)
class Contrast:
    """The difference in macro-F1 of two variants, second minus first.

    ``low``, ``high`` and ``p`` come from one test, a jackknife over memes. ``p_seeds`` is from
    Welch's t-test over seeds. ``corrected`` and ``seeds_corrected`` have Holm's correction over all
    contrasts of the task.
    """

    task: str
    first: str
    second: str
    memes: int
    difference: float
    low: float | None
    high: float | None
    p: float | None
    p_seeds: float | None
    corrected: float | None = None
    seeds_corrected: float | None = None


def contrast(
    task: str, names: tuple[str, str], one: VariantVerdicts, other: VariantVerdicts
) -> Contrast | None:
    """Compare two variants on the memes that both predict; None if there are none."""
    shared = [meme for meme in one.memes if meme in set(other.memes)]
    if not shared:
        return None
    one, other = one.keep(shared), other.keep(shared)
    width = one.cells.shape[1]

    def difference(sums: Floats) -> Floats:
        second, first = (
            _macro_f1(sheet.count(part))
            for sheet, part in ((other, sums[:, width:]), (one, sums[:, :width]))
        )
        return np.asarray(second.mean(-1) - first.mean(-1), float)

    cells = np.hstack([one.cells, other.cells])
    seen = float(difference(cells.sum(0)[None])[0])
    low = high = p = None
    if len(shared) > 1:
        left = difference(cells.sum(0) - cells)
        tested = compare_left_out(seen, left, bound=1.0)
        low, high, p = tested.low, tested.high, tested.p
    by_seed = [_macro_f1(side.count(side.cells.sum(0)[None]))[0].tolist() for side in (one, other)]
    seeds = welch_t_test(*by_seed)
    return Contrast(
        task, *names, len(shared), seen, low, high, p, seeds.p if seeds is not None else None
    )


def correct(found: Sequence[Contrast]) -> tuple[Contrast, ...]:
    """Apply Holm's correction over all contrasts of a task, separately per test."""
    repaired = list(found)
    for task in dict.fromkeys(contrast.task for contrast in found):
        rows = [row for row, contrast in enumerate(found) if contrast.task == task]
        memes = correct_known([found[row].p for row in rows])
        seeds = correct_known([found[row].p_seeds for row in rows])
        for row, by_meme, by_seed in zip(rows, memes, seeds, strict=True):
            repaired[row] = replace(found[row], corrected=by_meme, seeds_corrected=by_seed)
    return tuple(repaired)


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """Variants and training settings of a study.

    If ``epochs`` or ``rate`` is None, the values of the ToxiCN MM paper for the model family are
    used. ``pooling`` is the same for all networks, so that caption variants differ only in
    captions. ``against`` is the variant to compare with; by default each variant is compared with
    its encoders without captions.
    """

    variants: tuple[Variant, ...]
    encoding: StudyEncoders
    training: Training
    targets: tuple[TrainingTarget, ...] = ("harmful", "type")
    epochs: int | None = None
    rate: float | None = None
    pooling: Pooling = "mean"
    length: int = 80
    against: str = ""


@dataclass(frozen=True, slots=True)
class StudyRow:
    """One variant on one task: test metrics, averaged over ``seeds``.

    ``settings`` are the training settings, and the names of the encoders.
    """

    variant: str
    task: TrainingTarget
    seeds: int
    scores: tuple[Score, ...]
    settings: Mapping[str, JsonValue] = field(default_factory=dict)

    def find(self, key: str, label: str = "") -> Score | None:
        """Return a metric by its key and label."""
        return next((s for s in self.scores if (s.key, s.label) == (key, label)), None)


@dataclass(frozen=True, slots=True)
class Study(Result):
    """Results of a study: one row per variant and task, and contrasts between variants."""

    data: str
    trained_on: int
    tested_on: int
    rows: tuple[StudyRow, ...]
    contrasts: tuple[Contrast, ...]
    notes: tuple[str, ...] = ()

    def table(self) -> Table:
        """Show macro metrics on the test set in per cent."""
        keys = ("macro_precision", "macro_recall", "macro_f1")
        rows = []
        for row in self.rows:
            found = [row.find(key) for key in keys]
            main = found[-1]
            rows.append(
                (
                    row.variant,
                    row.task,
                    *(percent(score.value if score else None) for score in found),
                    main.note if main else "",
                )
            )
        columns = ("variant", "task", ">precision", ">recall", ">macro-F1", "spread")
        return Table(columns, tuple(rows), f"{self.data}: {self.tested_on:,} test memes")

    def _repr_html_(self) -> str:
        return self.table()._repr_html_() + self.contrast_table()._repr_html_()

    def contrast_table(self) -> Table:
        """Show differences of macro-F1 in percentage points, tested over memes and over seeds."""
        rows = [
            (
                f"{contrast.first} → {contrast.second}",
                contrast.task,
                f"{100 * contrast.difference:+.1f}",
                "–"
                if contrast.low is None or contrast.high is None
                else f"{100 * contrast.low:+.1f} to {100 * contrast.high:+.1f}",
                _show_p(contrast.corrected),
                _show_p(contrast.seeds_corrected),
            )
            for contrast in self.contrasts
        ]
        columns = ("variants", "task", ">points", ">95 %", ">p (memes)", ">p (seeds)")
        return Table(columns, tuple(rows), "Differences of macro-F1; p-values after Holm")


def _show_p(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}" if value >= 0.001 else "< 0.001"


def run_study(
    train_part: Loaded, test_part: Loaded, plan: StudyPlan, out: Path, say: ProgressLog
) -> Study:
    """Train and test every variant; a second call with the same plan resumes unfinished work."""
    _check(plan, train_part, test_part)
    data, notes = _match_parts(plan, train_part, test_part)
    known = {example.id: example for example in data[1].examples}
    sheets: dict[tuple[TrainingTarget, str], VariantVerdicts] = {}
    first = True
    for target in plan.targets:
        for variant in plan.variants:
            say(f"{target}: {variant.name}")
            if variant.fast:
                sheets[target, variant.name] = _run_fast(variant, target, data, out)
            else:
                sheet, first = _run_network(variant, target, data, plan, out, say)
                sheets[target, variant.name] = sheet
    rows = tuple(
        StudyRow(
            name, target, len(sheet.said), score_sheet(sheet, known), _describe(plan, name, target)
        )
        for (target, name), sheet in sheets.items()
    )
    found = Study(
        data=test_part.name,
        trained_on=len(data[0].examples),
        tested_on=len(data[1].examples),
        rows=rows,
        contrasts=_contrast_all(plan, sheets),
        notes=notes,
    )
    if first:
        replace_file(out / STUDY, dump_json(to_plain(found)).encode(), "study", "--out")
    return found


def _describe(plan: StudyPlan, name: str, target: TrainingTarget) -> dict[str, JsonValue]:
    variant = next(candidate for candidate in plan.variants if candidate.name == name)
    if variant.fast:
        return {}
    training = make_training(variant, plan.training, plan.epochs, plan.rate)
    shape = make_shape(variant, target, plan.pooling, plan.length)
    backbones = make_backbones(variant, plan.encoding)
    places = {"text": backbones.text, "image": backbones.image, "clip": backbones.clip}
    return {
        "epochs": training.epochs,
        "batch": training.batch,
        "rate": training.rate,
        "length": shape.length if variant.family not in ("resnet", "vit") else None,
        "dropout": shape.dropout,
        "pooling": shape.pooling,
        **{kind: Path(place).name for kind, place in places.items() if place},
    }


def _check(plan: StudyPlan, train_part: Loaded, test_part: Loaded) -> None:
    check_training(plan.training)
    names = [variant.name for variant in plan.variants]
    if plan.against and plan.against not in names:
        raise UnknownName("variant of this study:", plan.against, names)
    for part in (train_part, test_part):
        need_labels(part.examples, part.name)
    both = {example.id for example in train_part.examples} & {
        example.id for example in test_part.examples
    }
    if both:
        raise InputError(
            f"{len(both)} memes are in both the training and the test set, such as {min(both)}",
            hint="give disjoint training and test sets",
        )


def _match_parts(
    plan: StudyPlan, train_part: Loaded, test_part: Loaded
) -> tuple[tuple[Loaded, Loaded], tuple[str, ...]]:
    """Select the same memes for all variants; if one uses images, memes with an image."""
    notes = [*train_part.notes, *test_part.notes]
    if not any(variant.sees for variant in plan.variants):
        return (train_part, test_part), tuple(dict.fromkeys(notes))
    kept = []
    for name, part in (("training", train_part), ("test", test_part)):
        seen = tuple(example for example in part.examples if example.image is not None)
        if not seen:
            raise InputError(
                f"no meme of the {name} set has an image",
                hint="register the images, or leave out the variants that use images",
            )
        if lost := len(part.examples) - len(seen):
            notes.append(f"{lost} memes of the {name} set have no image and are skipped")
        kept.append(replace(part, examples=seen))
    return (kept[0], kept[1]), tuple(dict.fromkeys(notes))


def _run_network(
    variant: Variant,
    target: TrainingTarget,
    data: tuple[Loaded, Loaded],
    plan: StudyPlan,
    out: Path,
    say: ProgressLog,
) -> tuple[VariantVerdicts, bool]:
    train_part, test_part = (keep_typed(loaded) if target == "type" else loaded for loaded in data)
    training = make_training(variant, plan.training, plan.epochs, plan.rate)
    held = hold_out(train_part.examples, target, training.hold_out, training.share)
    examples = (*train_part.examples, *test_part.examples)
    test_rows = range(len(train_part.examples), len(examples))
    parts = split_rows(examples, held.valid, test_rows)
    shape = make_shape(variant, target, plan.pooling, plan.length)
    whole = replace(
        train_part,
        examples=examples,
        checksum=f"{train_part.checksum}+{test_part.checksum}",
    )
    seeds = SeedPlan(make_backbones(variant, plan.encoding), shape, training)
    trained = train_neural(whole, seeds, out / target / variant.slug, say, parts)
    return _read_sheet(
        trained.folder, [facts.seed for facts in trained.seeds], target
    ), trained.first


def _read_sheet(folder: Path, seeds: Sequence[int], target: TrainingTarget) -> VariantVerdicts:
    """Read the predictions of all seeds for the test set."""
    said: list[list[int]] = []
    memes: tuple[str, ...] = ()
    gold: list[int] = []
    for seed in seeds:
        lines = read_regular(folder / f"seed-{seed}" / PREDICTIONS).splitlines()
        rows = [row for row in map(orjson.loads, lines) if row["part"] == "test"]
        memes, gold = tuple(row["id"] for row in rows), [row["gold"] for row in rows]
        said.append([int(np.argmax(row["chances"])) for row in rows])
    return VariantVerdicts(
        memes, np.array(gold, np.int64), np.array(said, np.int64), classes_of(target)
    )


def _run_fast(
    variant: Variant, target: TrainingTarget, data: tuple[Loaded, Loaded], out: Path
) -> VariantVerdicts:
    """Train a fast detector once, and use its predictions for both tasks."""
    answers = _find_answers(variant, data, out)
    test_part = keep_typed(data[1]) if target == "type" else data[1]
    classes = classes_of(target)
    gold = gold_places(test_part.examples, target)
    names = [example.id for example in test_part.examples]
    said = [classes.index(answers[name][target]) for name in names]
    return VariantVerdicts(tuple(names), gold, np.array([said], np.int64), classes)


def _find_answers(
    variant: Variant, data: tuple[Loaded, Loaded], out: Path
) -> Mapping[str, Mapping[TrainingTarget, str]]:
    mark = _mark(variant, data)
    path = _place_answers(out, variant)
    if path.is_file():
        found = orjson.loads(read_regular(path))
        if found["mark"] != mark:
            raise StoreError(
                f"{path} was written with other data or settings",
                hint="choose another --out, or use the same data and settings",
            )
        answers: Mapping[str, Mapping[TrainingTarget, str]] = found["answers"]
        return answers
    settings = find_preset(variant.family)
    embedder = open_embedder(settings, None)
    detector = train(data[0].examples, settings, embedder)
    plain = [replace(example, label=None, type=None, modality=None) for example in data[1].examples]
    made: dict[str, dict[TrainingTarget, str]] = {
        prediction.id: {"harmful": prediction.name, "type": prediction.type or "none"}
        for prediction in detector.predict(plain, embedder)
    }
    body = dump_json({"variant": variant.name, "mark": mark, "answers": made})
    replace_file(path, body.encode(), "answers", "--out")
    return made


def _place_answers(out: Path, variant: Variant) -> Path:
    """Return the path of a fast detector's predictions."""
    return out / f"{variant.slug}.json"


def _mark(variant: Variant, data: tuple[Loaded, Loaded]) -> str:
    total = hashlib.sha256(variant.name.encode())
    for part in data:
        for example in part.examples:
            total.update(
                orjson.dumps(asdict(example) | {"image": example.image and example.image.name})
            )
    return total.hexdigest()


def _contrast_all(
    plan: StudyPlan, sheets: Mapping[tuple[TrainingTarget, str], VariantVerdicts]
) -> tuple[Contrast, ...]:
    """Compare each variant with the reference variant, or with its encoders without captions."""
    found = []
    for (target, name), sheet in sheets.items():
        variant = next(variant for variant in plan.variants if variant.name == name)
        base = plan.against or variant.base
        other = sheets.get((target, base))
        if other is not None and base != name:
            made = contrast(target, (base, name), other, sheet)
            found += [made] if made is not None else []
    return correct(found)


_STUDY = TypeAdapter(Study)


def read_study(folder: Path) -> Study:
    """Read the results of a study from its folder; raise StoreError if there are none."""
    path = folder / STUDY
    try:
        return _STUDY.validate_json(read_regular(path))
    except OSError as error:
        raise StoreError(
            f"{folder} has no study", hint="give an output folder of 'memantics detector study'"
        ) from error
    except ValidationError as error:
        raise StoreError(
            f"{path} cannot be read: {first_fault(error)}", hint="run the study again"
        ) from error


def read_verdicts(folder: Path, study: Study) -> dict[str, dict[str, float]]:
    """Read, per variant, the proportion of seeds that predict each test meme as harmful.

    A variant without predictions in the folder is skipped.
    """
    found = {}
    for row in study.rows:
        variant = read_variant(row.variant)
        place = folder / "harmful" / variant.slug
        if row.task == "harmful" and variant.fast and _place_answers(folder, variant).is_file():
            answers = orjson.loads(read_regular(_place_answers(folder, variant)))["answers"]
            found[row.variant] = {
                meme: float(answer["harmful"] == LABELS[1]) for meme, answer in answers.items()
            }
        elif row.task == "harmful" and list(place.glob(f"seed-*/{PREDICTIONS}")):
            seeds = [int(path.parent.name[5:]) for path in place.glob(f"seed-*/{PREDICTIONS}")]
            sheet = _read_sheet(place, sorted(seeds), row.task)
            shares = (sheet.said == 1).mean(0).tolist()
            found[row.variant] = dict(zip(sheet.memes, shares, strict=True))
    return found
