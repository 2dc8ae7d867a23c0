"""Parts of ToxiCN MM's paper about detectors and language models, from studies and runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from statistics import fmean

from pydantic import JsonValue

from memantics.benchmarks.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredDetector,
    ScoredRun,
    find_score,
    list_folders,
    name_runs,
)
from memantics.benchmarks.paper_file import (
    DeclaredPart,
    DeclaredRow,
    PaperMetric,
    fill_systems,
    list_others,
    show_scores,
    spread_cell,
)
from memantics.benchmarks.toxicn_mm.load import HarmRelease
from memantics.benchmarks.toxicn_mm.plugin import HARMFUL
from memantics.core.records import Answer, Score
from memantics.core.rundir import last_answers

HarmMaterial = PaperMaterial[HarmRelease]
# Model cards of single detectors use other metric names, and report on held-out memes.
_CARDS = {"detection": "harmful", "type": "types"}
_LONG = 700


def _find(detector: ScoredDetector, metric: PaperMetric) -> Score | None:
    """Return a detector's metric, by its name in a study or in a single detector's card."""
    task, name = metric.task, metric.key
    if task in detector.scores:
        return find_score(detector.scores[task], name)
    key, _, part = name.removesuffix("]").partition("[")
    key = {"macro_precision": "precision", "macro_recall": "recall"}.get(key, key)
    key = "f1/harmful" if key == "f1_harmful" else key
    key = f"f1/{part.partition('=')[2]}" if part else key
    return find_score(detector.scores.get(_CARDS[task], ()), key)


def table_5(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 5: all systems on both tasks, with other detectors, runs and baselines."""
    # If several studies have a variant, the first one fills the paper's row. Encoders other than
    # the paper's are other systems and are not compared.
    named = {detector.name: detector for detector in reversed(material.detectors)}
    used = {row.key: named[row.key] for row in part.rows if row.key in named}

    def study(row: DeclaredRow, metric: PaperMetric) -> Score | None:
        return _find(used[row.key], metric) if row.key in used else None

    theirs = [row.key for row in part.rows if _is_theirs(material, row, used.get(row.key))]
    rows, taken = fill_systems(material, part, study)
    rows = [
        row
        if not declared.key or declared.key in theirs
        else replace(row, cells=tuple(_set_apart(cell) for cell in row.cells))
        for row, declared in zip(rows, part.rows, strict=True)
    ]
    for detector in material.detectors:
        if not any(detector is one for one in used.values()):
            found = [_find(detector, metric) for metric in part.metrics]
            cells = tuple(replace(spread_cell(s), note=s.note if s else "") for s in found)
            rows.append(PaperRow(_name(detector, material), cells, "own", "Other detectors"))
    rows += list_others(material, part, taken, ("Other runs", "Baselines"))
    return part.show(
        rows,
        notes=(
            f"Trained rows: means ± standard deviations over seeds on {_tested(material)}.",
            "Confidence intervals resample memes. Darker is better within a column.",
            "The paper selected models by test scores; here a validation split is used.",
        ),
    )


def _set_apart(cell: Cell) -> Cell:
    """Return the cell of a detector with other encoders, which is not compared."""
    known = cell.value is not None and cell.paper is not None
    differs = (*cell.differs, "encoders: others than the paper's") if known else cell.differs
    return replace(cell, compared=False, differs=differs)


def _is_theirs(material: HarmMaterial, row: DeclaredRow, detector: ScoredDetector | None) -> bool:
    """Return whether a detector uses the paper's encoders, judged by the names of its system."""
    settings = detector.facts.get("settings") if detector else None
    if not isinstance(settings, dict):
        return False
    used = [str(settings[kind]) for kind in ("text", "image", "clip") if settings.get(kind)]
    return bool(used) and all(material.is_system(name, row.system) for name in used)


def _tested(material: HarmMaterial) -> str:
    """Return the number of memes on which detector studies were tested."""
    facts = (detector.facts for detector in material.detectors)
    sizes = {known.get("tested_on") for known in facts if "study" in known}
    told = " or ".join(sorted(f"{size:,}" for size in sizes if isinstance(size, int)))
    return f"{told} test memes" if told else "the test part"


def _name(detector: ScoredDetector, material: HarmMaterial) -> str:
    """Return a detector's name, with its folder if the name is not unique.

    A single detector has no test split.
    """
    twins = sum(other.name == detector.name for other in material.detectors) > 1
    marks = [detector.folder.name] if twins else []
    marks += [] if "study" in detector.facts else ["held out inside training"]
    return f"{detector.name} ({', '.join(marks)})" if marks else detector.name


def table_5_tests(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return the comparisons in a study; the paper states that all results have p < 0.01."""
    rows = []
    for detector in material.detectors:
        contrasts = detector.facts.get("contrasts")
        for contrast in contrasts if isinstance(contrasts, list) else ():
            if isinstance(contrast, dict):
                seeds = "A fast detector has no seeds; a test over seeds needs two of each."
                cells = (
                    _point(contrast, "difference", "low", "high"),
                    Cell(value=_round(contrast.get("corrected")), digits=3, reason="One meme."),
                    Cell(value=_round(contrast.get("seeds_corrected")), digits=3, reason=seeds),
                )
                task = "type" if contrast.get("task") == "type" else "detection"
                label = f"{contrast.get('first')} → {detector.name}"
                rows.append(PaperRow(label, cells, section=task))
    return part.show(sorted(rows, key=lambda row: row.section) or part.empty("all"))


def _point(contrast: Mapping[str, JsonValue], *names: str) -> Cell:
    value, low, high = (
        100 * v if isinstance(v := contrast.get(name), int | float) else None for name in names
    )
    return Cell(value=value, low=low, high=high, digits=2)


def _round(value: JsonValue) -> float | None:
    return round(float(value), 4) if isinstance(value, int | float) else None


# Study variants that a statement in the paper compares: the better ones, the worse ones.
_AGAINST = {
    "+MKE": (("fusion+both", "clip+both"), ("fusion", "clip")),
    "+image": (("fusion+image", "clip+image"), ("fusion", "clip")),
    "+text": (("fusion+text", "clip+text"), ("fusion", "clip")),
    "text": (("roberta",), ("resnet", "vit")),
}


def in_the_text(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return values stated in the paper's text: from a study, or else from Table 5."""
    systems = dict(zip(_VARIANTS, list(material.systems)[-len(_VARIANTS) :], strict=True))
    studied = {detector.name: detector for detector in reversed(material.detectors)}
    rows = []
    for row in part.rows:
        if not row.key:
            digits = 2 if isinstance(row.cells[0], float) and row.cells[0] < 1 else 1
            cell = Cell(row.cells[0], digits=digits, reason=part.reason)
            rows.append(PaperRow(row.label, (cell,)))
            continue
        if row.key.startswith("share "):
            rows.append(PaperRow(row.label, (_share_harmful(material, row),)))
            continue
        task, key, sort = row.key.split()
        metric = PaperMetric(task=task, key=key)
        found = {name: _find(detector, metric) for name, detector in studied.items()}
        ours = {
            name: score.value
            for name, score in found.items()
            if score is not None and score.value is not None
        }
        printed = {r.system: r.metrics for r in material.rows_of(task, "Table 5")}
        theirs = {name: printed[system][key] for name, system in systems.items()}
        known = all(name in ours for group in _AGAINST[sort] for name in group)
        above, below = (
            [(ours if known else theirs)[name] for name in group] for group in _AGAINST[sort]
        )
        value = round(100 * (fmean(above) - fmean(below)), 2)
        digits = 1 if sort == "text" else 2
        cell = Cell(row.cells[0], value, digits=digits, compared=False, arithmetic=not known)
        rows.append(PaperRow(row.label, (cell,)))
    return part.show(rows)


def _share_harmful(material: HarmMaterial, row: DeclaredRow) -> Cell:
    """Return the proportion of harmful memes of a kind, for a statement without an exact value."""
    parts = material.release.parts
    known = [memes for (version, _), memes in parts.items() if version == "v1"]
    whole = not material.comparable or len(known) == 2
    harmful = [meme for memes in known for meme in memes if meme.harmful] if whole else []
    if row.key == "share offence":
        found = sum(meme.type == "offence" for meme in harmful)
    else:
        found = sum(meme.modality in ("text", "both") for meme in harmful)
    fill = f"memantics data add {material.name} DIR"
    differs = ("the paper states no exact value",)
    cell = Cell(row.cells[0], compared=False, fill=fill)
    if not harmful:
        return cell
    value = round(100 * found / len(harmful), 2)
    return replace(cell, value=value, n=len(harmful), digits=2, fill="", differs=differs)


_VARIANTS = (
    *("roberta", "resnet", "vit"),
    *("fusion", "fusion+text", "fusion+image", "fusion+both"),
    *("clip", "clip+text", "clip+image", "clip+both"),
)


def case_study(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return harmful memes on which models disagree, with captions and reasons."""
    every = material.of_task("detection")
    runs = [run for run in every if material.repeats_of(run)[0] is run]
    labels = name_runs(runs)
    repeats = [[last_answers(one.folder) for one in material.repeats_of(run)] for run in runs]
    answers = [said[0] for said in repeats]
    verdicts: dict[str, Mapping[str, float]] = {
        label: {
            name: fmean(one[name].value == HARMFUL for one in said if name in one)
            for name in said[0]
        }
        for label, said in zip(labels, repeats, strict=True)
    }
    verdicts |= {_name(one, material): one.said for one in material.detectors if one.said}
    memes = {
        meme.id: meme
        for group in reversed(list(material.release.parts.values()))
        for meme in group
        if meme.harmful and any(meme.id in said for said in verdicts.values())
    }

    def spread(name: str) -> float:
        """Return the disagreement of models; 0 means that exactly half of them are correct."""
        given = [said[name] for said in verdicts.values() if name in said]
        return abs(2 * sum(given) - len(given)) + len(verdicts) - len(given)

    texts = [
        PaperText(
            f"{name}: {memes[name].type}, {memes[name].modality}",
            "\n".join(
                [
                    f"text: {memes[name].text}",
                    f"text caption: {memes[name].text_caption}",
                    f"image caption: {memes[name].image_caption}",
                    *_explain(name, labels, answers),
                    f"prediction: {_predict(name, verdicts)}",
                ]
            ),
        )
        for name in sorted(memes, key=lambda name: (spread(name), name))[:3]
    ]
    note = part.lacking if texts else f"Filled by: {part.command()}."
    return replace(part.show(texts=texts, notes=[note]), runs=list_folders(every if texts else ()))


def _explain(
    name: str, labels: Sequence[str], answers: Sequence[Mapping[str, Answer]]
) -> Iterator[str]:
    for label, model_answers in zip(labels, answers, strict=True):
        if name in model_answers:
            yield f"{label}: {' '.join(model_answers[name].reply.text.split())[:_LONG]}"


def _predict(name: str, verdicts: Mapping[str, Mapping[str, float]]) -> str:
    given = {label: said[name] for label, said in verdicts.items() if name in said}
    return ", ".join(
        f"{label} {'✓' if probability > 0.5 else '✗'}" for label, probability in given.items()
    )


def figure_c1(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure C1: proportion of harmful memes detected, by modality of the harm."""
    runs = material.of_task("detection")
    named: dict[str, tuple[Sequence[Score], ScoredRun | None]] = {
        detector.name: (detector.scores["detection"], None)
        for detector in material.detectors
        if "detection" in detector.scores
    }
    for run, label in zip(runs, name_runs(runs), strict=True):
        named[label] = (run.results.scores, run)
    rows = [
        PaperRow(
            name,
            tuple(
                replace(cell, reason=part.lacking)
                for cell in show_scores(part, {"detection": scores}, ran)
            ),
            "own",
        )
        for name, (scores, ran) in named.items()
    ]
    return part.show(rows or part.empty("all"))


def table_c1(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table C1: results of Chinese multimodal language models."""
    return part.show(fill_systems(material, part)[0])


def table_b8(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table B8: the encoders and models of the rows of Table 5."""
    known = {detector.name: detector.facts.get("settings") for detector in material.detectors}
    rows = []
    for row in part.rows:
        system = material.systems.get(row.system)
        settings = known.get(row.label)
        value = settings.get(row.key) if isinstance(settings, dict) else None
        if system:
            run = material.find_run("detection", row.system, row.options, "test")
            value = run.model.partition("/")[2] if run else None
        fill = part.command(row.fill, model=system.model if system else "", **row.options)
        rows.append(PaperRow(row.label, (Cell(row.cells[0], value, compared=False, fill=fill),)))
    return part.show(rows)


def table_b9(material: HarmMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table B9: the hyperparameters of the trained rows."""
    by_place: list[Mapping[str, JsonValue]] = [{}, {}]
    for detector in material.detectors:
        settings = detector.facts.get("settings")
        place = 0 if detector.name in ("resnet", "vit") else 1
        if detector.name in _VARIANTS and isinstance(settings, dict) and not by_place[place]:
            by_place[place] = settings
    return part.show(
        PaperRow(
            row.label,
            tuple(
                Cell(paper, setting.get(row.key), compared=False, fill=part.command())
                if paper is not None
                else Cell()
                for paper, setting in zip(row.printed, by_place, strict=True)
            ),
        )
        for row in part.rows
    )
