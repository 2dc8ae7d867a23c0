"""Inter-annotator agreement by field, label, pair of annotators and time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from math import sqrt

from pydantic import JsonValue

from memantics.annotation.aggregation import label_key, label_text
from memantics.annotation.consensus import AssignedItem, Person, answers_at
from memantics.annotation.project_settings import is_sampled
from memantics.annotation.workflow import FieldLevel, Workflow, WorkflowField
from memantics.core.records import Closed
from memantics.metrics import agreement as metric
from memantics.metrics.agreement import agreement_spans
from memantics.metrics.interval import Span

StageValues = Mapping[str, JsonValue]
Unit = tuple[str, Mapping[int, JsonValue]]  # item key, and answer per annotator
StageUnit = tuple[
    str, Mapping[int, StageValues]
]  # item key, and answers per annotator for all fields of a stage
ALL = "*"
MORE, ENOUGH = 50, 0.02
_WINDOWS, _FEWEST = 6, 10


class FieldAgreement(Closed):
    """Agreement on one field, or on ``*``: all fields of a stage combined into one label.

    ``pairwise`` is the mean proportion of agreeing pairs, ``complete`` the proportion of items on
    which all annotators agree. ``cohen`` is the mean over pairs of annotators. A metric is None if
    it is not defined. ``spans`` are 95% confidence intervals by metric; ``labels`` gives, per
    label, how often a second annotator chooses the same label. ``windows`` are the values of
    Krippendorff's alpha in consecutive blocks of items, in the order in which they were finished.
    """

    stage: str
    field: str
    items: int
    annotators: int
    pairwise: float | None
    complete: float | None
    cohen: float | None
    fleiss: float | None
    alpha: float | None
    ac1: float | None
    icc: float | None
    level: str
    spans: Mapping[str, Span] = {}
    labels: Mapping[str, float] = {}
    windows: tuple[float | None, ...] = ()

    @property
    def change(self) -> float | None:
        """Return by how much 50 more items may change Krippendorff's alpha (95% confidence).

        The half-width of the confidence interval shrinks with the square root of the number of
        items. A step from n to n + m items changes alpha by about that half-width times sqrt(m / (n
        + m)). With fewer than 20 items the result is None, because the interval may have zero
        width.
        """
        if "alpha" not in self.spans or self.items < 2 * _FEWEST:
            return None
        low, high = self.spans["alpha"]
        return (high - low) / 2 * sqrt(MORE / (self.items + MORE))


class PairAgreement(Closed):
    """Agreement of two annotators on the items that both annotated."""

    annotators: tuple[str, str]
    items: int
    answers: int
    same: float
    kappa: float | None


def measure_agreement(
    workflow: Workflow, items: Sequence[AssignedItem], *, random_only: bool = False
) -> tuple[FieldAgreement, ...]:
    """Measure agreement per field at every stage with several independent annotators.

    The field ``*`` combines all fields of a stage. With ``random_only``, only items that were
    queued in random order count, not those queued by uncertainty.
    """
    share = workflow.settings.random_proportion
    agreements: list[FieldAgreement] = []
    for place, stage in workflow.independent_stages:
        fields = [field for field in workflow.stage_fields(place) if field.scale_level != "none"]
        units = [
            (item.row.item_key, row)
            for item in sorted(items, key=_when_finished)
            if len(row := answers_at(item, place)) > 1
            and not (random_only and not is_sampled(item.row.item_key, "random", share))
        ]
        if stage.annotators < 2 and not units:
            continue
        agreements += [
            _agreement_of(stage.id, field, list(_units_of(field, units))) for field in fields
        ]
        if len(fields) > 1:
            agreements.append(_agreement_of(stage.id, None, list(_joined(fields, units))))
    return tuple(agreements)


def compare_people(
    workflow: Workflow, items: Sequence[AssignedItem], people: Mapping[int, Person]
) -> tuple[PairAgreement, ...]:
    """Compare every two annotators with items in common, lowest agreement first."""
    met: dict[tuple[int, int], list[tuple[str, str, metric.Label, metric.Label]]] = {}
    for place, _ in workflow.independent_stages:
        names = [field.id for field in workflow.stage_fields(place) if field.scale_level != "none"]
        for item in items:
            said = answers_at(item, place)
            for one, other in combinations(sorted(said), 2):
                met.setdefault((one, other), []).extend(
                    (item.row.item_key, name, label_key(here), label_key(there))
                    for name in names
                    if (here := said[one].get(name)) is not None
                    and (there := said[other].get(name)) is not None
                )
    found = [
        PairAgreement(
            annotators=(people[one].pseudonym, people[other].pseudonym),
            items=len({row[0] for row in rows}),
            answers=len(rows),
            same=sum(here == there for *_, here, there in rows) / len(rows),
            kappa=_mean_kappa(rows),
        )
        for (one, other), rows in met.items()
        if rows and one in people and other in people
    ]
    return tuple(sorted(found, key=lambda pair: (pair.same, pair.annotators)))


def _mean_kappa(rows: Sequence[tuple[str, str, metric.Label, metric.Label]]) -> float | None:
    """Return the mean of Cohen's kappa over fields, computed separately for each field."""
    fields = sorted({name for _, name, _, _ in rows})
    pairs = ([row[2:] for row in rows if row[1] == field] for field in fields)
    found = [metric.cohen_kappa(*zip(*said, strict=True)) for said in pairs]
    known = [kappa for kappa in found if kappa is not None]
    return sum(known) / len(known) if known else None


def _when_finished(item: AssignedItem) -> tuple[float, int]:
    return item.last_at, item.row.number


def _joined(fields: Sequence[WorkflowField], forms: Sequence[StageUnit]) -> Iterator[Unit]:
    names = [field.id for field in fields]
    for item, row in forms:
        yield item, {u: label_key([said.get(name) for name in names]) for u, said in row.items()}


def _units_of(field: WorkflowField, forms: Sequence[StageUnit]) -> Iterator[Unit]:
    """Yield one unit of annotation per item, or one per list element for fields with ``each``."""
    for item, row in forms:
        said = {u: answer[field.id] for u, answer in row.items() if field.id in answer}
        if not field.each:
            yield item, said
            continue
        lists = {u: value for u, value in said.items() if isinstance(value, list)}
        for place in range(max(map(len, lists.values()), default=0)):
            yield item, {u: value[place] for u, value in lists.items() if place < len(value)}


def _agreement_of(stage: str, field: WorkflowField | None, units: Sequence[Unit]) -> FieldAgreement:
    """Compute the agreement metrics of one field; None means all fields as one label."""
    level: FieldLevel = field.scale_level if field else "nominal"
    kind: metric.MeasurementLevel = level if level != "none" else "nominal"
    users = sorted({user for _, unit in units for user in unit})
    rated = [
        (item, [_rating(unit.get(user)) for user in users])
        for item, unit in units
        if sum(value is not None for value in unit.values()) > 1
    ]
    rows = [row for _, row in rated]
    count = 2 if field and field.kind == "boolean" else len(field.options) if field else 0
    labels = metric.label_agreement(rows) if field and kind == "nominal" else {}
    return FieldAgreement(
        stage=stage,
        field=field.id if field else ALL,
        items=len(rated),
        annotators=len(users),
        pairwise=metric.pairwise_agreement(rows),
        complete=metric.complete_agreement(rows),
        cohen=metric.mean_cohen_kappa(rows),
        fleiss=metric.fleiss_kappa(rows),
        alpha=metric.krippendorff_alpha(rows, kind),
        ac1=metric.gwet_ac1(rows, count),
        icc=metric.intraclass(rows) if kind != "nominal" else None,
        level=kind,
        spans=agreement_spans(rows, kind, clusters=[item for item, _ in rated], labels=count),
        labels={label_text(label): share for label, share in sorted(labels.items(), key=str)},
        windows=_windows(rows, kind),
    )


def _windows(
    rows: Sequence[metric.RatingRow], level: metric.MeasurementLevel
) -> tuple[float | None, ...]:
    count = min(_WINDOWS, len(rows) // _FEWEST)
    edges = [len(rows) * place // count for place in range(count + 1)] if count > 1 else []
    return tuple(
        metric.krippendorff_alpha(rows[start:stop], level) for start, stop in pairwise(edges)
    )


def _rating(value: JsonValue) -> metric.Label | None:
    return value if value is None or isinstance(value, str | int | float) else label_key(value)
