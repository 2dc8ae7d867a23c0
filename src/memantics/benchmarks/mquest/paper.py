"""Tables and figures of M-QUEST's paper that are computed from data, runs and annotations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

from pydantic import JsonValue

from memantics.benchmarks.factories import LETTERS, list_options, proportion_score
from memantics.benchmarks.mquest.knowledge import EXTRA_DIMENSIONS
from memantics.benchmarks.mquest.load import MquestRelease, QaRecord
from memantics.benchmarks.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredRun,
    find_score,
    list_folders,
    list_statistics,
    name_runs,
    run_cell,
    score_cell,
)
from memantics.benchmarks.paper_file import (
    DeclaredPart,
    fill_systems,
    list_others,
    read_paper,
    write_options,
)
from memantics.core.queue import JudgedQuestion, list_judged_questions
from memantics.core.records import Image, Item
from memantics.core.rundir import last_answers, read_bare_items, read_items

MquestMaterial = PaperMaterial[MquestRelease]
_CHARACTERS = 1200


def _name(material: MquestMaterial, runs: Sequence[ScoredRun]) -> list[str]:
    """Return the display name of a run: the name that the paper gives the system, if any."""
    labels = zip(runs, name_runs(runs), strict=True)
    return [
        label if label != run.model else material.name_system(label) or label
        for run, label in labels
    ]


def table_1(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 1: questions by dimension in the toxicity set, the extension, and in total."""
    judged = _judged(material)
    accepted = [question for question in judged if question.accepted]
    toxic = [one for one in accepted if not one.first or one.dimension == "Toxicity"]
    extended = [one for one in accepted if one.first and one.dimension != "Toxicity"]
    first, second, whole = part.printed.values()
    plain = (None,) * len(first)
    if not material.compared:
        review, added = part.command(), _own_dimensions(material, part)
        first, second, whole = (
            (*row[:-2], *(None,) * len(added), *row[-2:]) for row in (first, second, whole)
        )
        columns = (*part.columns[:-2], *added, *part.columns[-2:])
        part = part.model_copy(update={"names": part.names | added, "columns": columns})
        rows = [
            _review_row(part, "ToxM-Quest", toxic, first, "" if toxic else review),
            _review_row(part, "Extension", extended, second, "" if extended else review),
            _count_row(part, "M-Quest", material, whole),
        ]
        return part.show(rows)
    ends = [f"toxmquest350.{statistic}" for statistic in ("memes", "per_meme")]
    keys = [*(f"toxmquest350.dimension.{name}" for name in part.names), *ends]
    cells = [
        material.statistic(key) if printed is not None else Cell()
        for key, printed in zip(keys, first, strict=True)
    ]
    closed = [Cell(printed, reason=part.reason) if printed else Cell() for printed in second[:-1]]
    average = Cell(second[-1], round(251 / 180, 2), digits=2, arithmetic=True)
    rows = [
        PaperRow("ToxM-Quest", tuple(cells)),
        PaperRow("Extension", (*closed, average)),
        PaperRow("M-Quest", _sum_up(first, second, whole)),
        _count_row(part, "Candidates in this copy", material, plain),
    ]
    if judged:
        rows.append(_review_row(part, "Accepted in your review: ToxM-Quest", toxic, plain, ""))
        rows.append(_review_row(part, "Accepted in your review: Extension", extended, plain, ""))
    return part.show(rows)


def _own_dimensions(material: MquestMaterial, part: DeclaredPart) -> dict[str, str]:
    """Return the dimensions of the user's data that are not in the paper."""
    start = "questions.dimension."
    found = (k.removeprefix(start) for k, n in material.values.items() if n and start in k)
    return {} if material.compared else {name: name for name in found if name not in part.names}


def _sum_up(*rows: Sequence[JsonValue]) -> tuple[Cell, ...]:
    """Return the total row of Table 1."""
    first, second, whole = ([v if isinstance(v, int | float) else 0 for v in row] for row in rows)
    sums = [a + b for a, b in zip(first[:10], second[:10], strict=True)]
    made = [*sums, first[10], round(sum(sums) / first[10], 2)]
    return tuple(
        Cell(printed, summed, digits=2 if place == 11 else None, arithmetic=True)
        for place, (printed, summed) in enumerate(zip(whole, made, strict=True))
    )


def _count_row(
    part: DeclaredPart, label: str, material: MquestMaterial, paper: Sequence[JsonValue]
) -> PaperRow:
    """Return the number of questions per dimension in the data."""
    values = material.values
    counts = [values.get(f"questions.dimension.{name}") for name in part.names]
    asked = counts if material.compared else [values.get("questions.total")]
    total = sum(asked_here for asked_here in asked if isinstance(asked_here, int))
    memes = values.get("memes")
    average = round(total / memes, 2) if isinstance(memes, int) and memes else None
    cells = [
        Cell(printed, value, compared=False, fill=f"memantics data add {material.name} DIR")
        for printed, value in zip(paper, (*counts, memes), strict=False)
    ]
    return PaperRow(label, (*cells, Cell(paper[-1], average, digits=2, compared=False)), "own")


def _review_row(
    part: DeclaredPart,
    label: str,
    accepted: Sequence[JudgedQuestion],
    paper: Sequence[JsonValue],
    fill: str,
) -> PaperRow:
    """Return the number of questions that annotators accepted, by dimension."""
    counts = Counter(question.dimension for question in accepted)
    memes = len({question.meme for question in accepted})
    average = round(len(accepted) / memes, 2) if memes else None
    values = [*(counts[name] for name in part.names), memes]
    cells = [
        Cell(printed, None if fill else value, compared=False, fill=fill)
        if printed is not None or not fill
        else Cell()
        for printed, value in zip(paper, values, strict=False)
    ]
    last = Cell(paper[-1], average, digits=2, compared=False, fill=fill)
    return PaperRow(label, (*cells, last), "own")


def _judged(material: MquestMaterial) -> list[JudgedQuestion]:
    return [question for review in material.reviews for question in list_judged_questions(review)]


def table_2(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 2: accuracy on all questions, pairs, toxicity, reasons, and macro average."""
    rows, taken = fill_systems(material, part)
    return part.show([*rows, *list_others(material, part, taken)])


def traits(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Table 2 by the training properties of models that the paper discusses."""
    known: dict[str, Mapping[str, str]] = {n: s.traits for n, s in material.systems.items()}
    # The paper states the traits of its models; a table of the user describes further models only.
    ignored = [model for model in material.traits if material.name_system(model)]
    known |= {m: told for m, told in material.traits.items() if m not in ignored}
    rows = []
    for trait in dict.fromkeys(name for model_traits in known.values() for name in model_traits):
        for value in sorted(
            {model_traits[trait] for model_traits in known.values() if trait in model_traits}
        ):
            members = [
                model for model, model_traits in known.items() if model_traits.get(trait) == value
            ]
            rows += _trait_rows(material, part, f"{trait}: {value}", members)
    note = f"Ignored in --traits, since the paper states their traits: {', '.join(ignored)}."
    return part.show(rows, notes=[note] if ignored else [])


def _trait_rows(
    material: MquestMaterial, part: DeclaredPart, label: str, members: Sequence[str]
) -> list[PaperRow]:
    printed = [row for row in material.rows_of("qa", "Table 2") if row.system in members]
    runs = [
        run
        for run in material.of_task("qa")
        if any(material.is_system(run.model, name) for name in members)
    ]
    keys = [metric.key for metric in part.metrics]
    rows = []
    if printed:
        means = [100 * fmean(row.metrics[key] for row in printed) for key in keys]
        cells = [Cell(value=mean, n=len(printed), digits=2, arithmetic=True) for mean in means]
        rows.append(PaperRow("the paper's models", tuple(cells), section=label))
    if runs:
        rows.append(PaperRow("your runs", tuple(_mean(runs, key) for key in keys), "own", label))
    return rows


def _mean(runs: Sequence[ScoredRun], metric: str) -> Cell:
    found = [find_score(run.results.scores, metric) for run in runs]
    values = [score.value for score in found if score is not None and score.value is not None]
    origin = next((run.facts.origin for run in runs if run.facts.origin), "")
    if not values:
        return Cell()
    folders = tuple(str(run.folder) for run in runs)
    return Cell(value=100 * fmean(values), n=len(values), digits=2, origin=origin, runs=folders)


def figure_2(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return accuracy by dimension (Figure 2); the paper plots these values without numbers."""
    runs, names = material.of_task("qa"), part.names | _own_dimensions(material, part)
    if not runs:
        asking = write_options(material.shared_protocol)
        asked = tuple(
            Cell(fill=part.command(model=system.model, extra=system.extra, options=asking))
            for system in material.systems.values()
        )
        lacking = (Cell(reason=part.reason),) * len(asked)
        start = "toxmquest350.dimension." if material.compared else ""
        held = material.expected if material.compared else names
        rows = [
            PaperRow(title, asked if f"{start}{name}" in held else lacking)
            for name, title in names.items()
        ]
        return part.show(rows, columns=material.systems, drawn=False)
    rows = [
        PaperRow(
            title,
            tuple(run_cell(run, f"accuracy[dimension={name}]", part.digits) for run in runs),
            "own",
        )
        for name, title in names.items()
    ]
    return part.show(rows, columns=_name(material, runs))


def figure_3(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 3: one toxicity question on which models disagree, with their answers."""
    return _show_case(material, part, "T")


def figure_9(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 9: a question on another dimension of the same meme, with answers."""
    return _show_case(material, part, "R")


def _show_case(material: MquestMaterial, part: DeclaredPart, kind: str) -> PaperPart:
    """Return the question of a type on which most models disagree; in a tie, the first one."""
    runs = material.of_task("qa")
    said = [last_answers(run.folder) for run in runs]
    items = list(read_bare_items(runs[0].folder)) if runs else []
    asked = [item for item in items if item.tags.get("kind") == kind]
    shared = [item for item in asked if all(item.id in group for group in said)]
    if not shared:
        return part.show(notes=[part.lacking])

    def spread(item: Item) -> int:
        return len({str(answers[item.id].value) for answers in said})

    item = max(shared, key=spread)
    options = list_options(item.form.fields[0].options)
    head = f"{item.form.question}\n\n{options}\n\nright: {item.gold}"
    title = f"Meme {item.group}, {part.names.get(item.tags['dimension'], item.tags['dimension'])}"
    answers = [
        PaperText(name, group[item.id].reply.text[:_CHARACTERS] or f"({group[item.id].status})")
        for name, group in zip(_name(material, runs), said, strict=True)
    ]
    shown = part.show(texts=[PaperText(title, head), *answers])
    return replace(shown, runs=list_folders(runs))


def figure_5(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 5: the proportion of accepted questions, by dimension."""
    judged, rows, rates = _judged(material), [], list[float]()
    *dimensions, mean = part.rows
    for row in dimensions:
        questions = [one for one in judged if one.dimension == row.key]
        found = proportion_score(
            "", [one.accepted for one in questions], [one.meme for one in questions]
        )
        cell = score_cell(found if questions else None, part.digits)
        if row.key != "Toxicity" and isinstance(cell.value, int | float):
            rates.append(cell.value)
        cell = replace(cell, paper=row.printed[0], compared=False, fill=part.command())
        rows.append(PaperRow(row.label, (cell,)))
    printed = [row.printed[0] for row in dimensions if row.key != "Toxicity"]
    counted = len(rates) == len(printed)
    for name in _own_dimensions(material, part):
        questions = [one for one in judged if one.dimension == name]
        found = proportion_score(
            "", [one.accepted for one in questions], [one.meme for one in questions]
        )
        cell = score_cell(found if questions else None, part.digits)
        rows.append(PaperRow(name, (replace(cell, fill=part.command()),), "own"))
    value = fmean(rates if counted else [v for v in printed if isinstance(v, float)])
    last = Cell(mean.printed[0], round(value, 2), digits=2, compared=False, arithmetic=not counted)
    return part.show([*rows, PaperRow(mean.label, (last,))])


def figure_6(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return the prompt of a run (Figure 6); without a run, the built-in prompt."""
    texts = []
    runs = material.of_task("qa")
    for run, name in zip(runs, _name(material, runs), strict=True):
        line = next(read_items(run.folder), None)
        parts = [piece for message in line.messages for piece in message.parts] if line else []
        shown = "\n".join("[image]" if isinstance(piece, Image) else piece for piece in parts)
        if shown:
            texts.append(PaperText(f"as sent to {name}", shown))
    if not texts:
        path = Path(__file__).with_name("prompts") / "explain_first.md"
        texts.append(PaperText("our template", path.read_text(encoding="utf-8")))
    return replace(part.show(texts=texts), runs=list_folders(runs))


def figure_8(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return Figure 8: two questions with their explanations."""
    release = material.release
    known = release.files and any(f.id in release.selection for f in release.files)
    questions = release.questions("toxmquest350" if material.compared and known else "ten")
    pairs = (record for record, _ in zip(questions, range(2), strict=False))
    return part.show(texts=[_show_pair(record, part.names) for record in pairs])


def _show_pair(record: QaRecord, names: Mapping[str, str]) -> PaperText:
    options = "\n".join(f"({LETTERS[i]}) {text}" for i, text in enumerate(record.options))
    right = LETTERS[record.answer] if record.answer is not None else "–"
    body = f"{record.question}\n\n{options}\n\nAnswer: {right}\n\n{record.explanation}"
    return PaperText(f"Meme {record.meme}, {names.get(record.dimension, record.dimension)}", body)


def in_the_text(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return values stated in the text of the paper."""
    expected = material.expected.items()
    keys = [k for k, row in expected if row.paper is not None and not k.startswith("toxmquest350.")]
    return part.show(list_statistics(material, keys))


def places(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return the positions of correct options and of the option "None of the others"."""
    lines = {name: f"key.position.{name}." for name in (*part.names, *EXTRA_DIMENSIONS)}
    lines |= {"all correct options": "key.position.", "None of the others": "none.position."}
    return part.show(
        PaperRow(
            part.names.get(name, name), tuple(material.statistic(f"{key}{n}") for n in range(4))
        )
        for name, key in lines.items()
    )


def beyond(material: MquestMaterial, part: DeclaredPart) -> PaperPart:
    """Return statistics of the released files that the paper does not report."""
    shown = ("key.position.", "none.position.", "materialised.", "individuals.raw.")
    expected = material.expected.items()
    keys = [key for key, row in expected if row.paper is None and not key.startswith(shown)]
    return part.show(list_statistics(material, keys))


PAPER = read_paper(
    Path(__file__).with_name("paper.toml"),
    {
        "Table 1": table_1,
        "Table 2": table_2,
        "Table 2 by model traits": traits,
        "Figure 2": figure_2,
        "Figure 3": figure_3,
        "Figure 5": figure_5,
        "Figure 6": figure_6,
        "Figure 8": figure_8,
        "Figure 9": figure_9,
        "Values in the text": in_the_text,
        "Positions of options": places,
        "Further statistics": beyond,
    },
)
