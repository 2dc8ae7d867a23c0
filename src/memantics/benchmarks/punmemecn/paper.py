"""Tables and figures of PunMemeCN's paper, computed from data, runs and annotations."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from memantics.benchmarks import paper as papers
from memantics.benchmarks.paper import RowKind
from memantics.benchmarks.paper_file import (
    DeclaredPart,
    PaperMetric,
    fill_systems,
    read_paper,
    show_declared,
    show_scores,
    write_options,
)
from memantics.benchmarks.published import PublishedRow
from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.benchmarks.punmemecn.official import read_released
from memantics.benchmarks.punmemecn.wording import STYLES

PunMaterial = papers.PaperMaterial[PunRelease]


def figure_1(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Figure 1: two puns, one by sound and one by two senses of a word."""
    puns = [meme for meme in material.release.memes if meme.is_pun]
    sound = next((meme for meme in puns if meme.reading != meme.caption), None)
    senses = next((meme for meme in puns if meme.reading == meme.caption), None)
    return part.show(
        texts=(
            papers.PaperText(f"{meme.id}: {meme.caption} – {meme.reading}", meme.explanation)
            for meme in (sound, senses)
            if meme is not None
        )
    )


def annotation(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return sections 3.1 and 5.1: agreement, and annotators compared with the final label."""
    shown = show_declared(material, part)
    agreed, n = _agree_on_punchlines(material) or (None, 0)
    title = material.expected["agreement.punchline"].title
    fill = (
        f"memantics paper {material.name} --annotations QUEUE" if material.source.published else ""
    )
    cell = papers.Cell(95.6, agreed, n=n, digits=1, compared=False, fill=fill, reason=part.reason)
    return part.show(replace(r, cells=(cell,)) if r.label == title else r for r in shown.rows)


def _agree_on_punchlines(material: PunMaterial) -> tuple[float, int] | None:
    """Return how often all annotators named the same pun word and homophone."""
    said = [
        {
            (vote.values.get("pun"), vote.values.get("pun_word"), vote.values.get("homophone"))
            for vote in reviewed.aggregated.annotations
            if vote.stage == reviewed.aggregated.annotations[0].stage
        }
        for review in material.reviews
        if review.card.workflow == "pun-form"
        for reviewed in review.annotated
        if reviewed.aggregated is not None and len(reviewed.aggregated.annotations) > 1
    ]
    return (
        (100 * sum(len(readings) == 1 for readings in said) / len(said), len(said))
        if said
        else None
    )


def hard_negatives(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return how many groups of the release the command ``build hard-negatives`` recovers."""
    groups = material.values.get("hard_negatives.groups")
    n = groups if isinstance(groups, int) else 0
    cells = (
        papers.Cell(value=material.values.get(key), n=n, compared=False, fill=part.command())
        for key in part.rows[0].keys
    )
    return part.show([papers.PaperRow(part.rows[0].label, tuple(cells), "own")])


def table_1(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 1: chat statistics with two other data sets, and files the user measured."""
    *others, ours = part.rows
    printed = {row.label: row.printed for row in others}
    keys = [key.removeprefix("chats.") for key in ours.keys]
    named = (key.removesuffix(".distinct_1") for key in material.values if "distinct_1" in key)
    found = (key.removeprefix("chats").removeprefix(".") for key in named)
    unprinted = [name for name in found if name and name not in printed]
    rows = []
    for name in (*printed, "", *unprinted):
        start = f"chats.{name}" if name else "chats"
        known = [material.expected[key].paper if not name else None for key in ours.keys]
        # It is unknown whether a file of that name is the copy measured in the paper, and which
        # models measured perplexity and BERTScore.
        same = name not in printed and material.comparable
        cells = (
            papers.Cell(
                paper,
                material.values.get(f"{start}.{key}"),
                digits=part.digits,
                compared=same and key.startswith("distinct"),
                fill=part.command(),
            )
            for key, paper in zip(keys, printed.get(name, known), strict=True)
        )
        rows.append(
            papers.PaperRow(
                name or ours.label, tuple(cells), "own" if name in unprinted else "paper"
            )
        )
    return part.show(rows)


def _fits(run: papers.ScoredRun, options: Mapping[str, str]) -> bool:
    """Return whether a run used these options; by default Chinese prompts, as in the paper."""
    wanted = {"language": "zh", **options}
    return all(run.facts.options.get(name, value) == value for name, value in wanted.items())


def _find_runs(
    material: PunMaterial, metric: PaperMetric, model: str, options: Mapping[str, str]
) -> list[papers.ScoredRun]:
    """Return all runs of a model, or of a system of the paper, with these options."""
    wanted = {**options, **metric.options}
    return [
        run
        for run in material.of_task(metric.task)
        if _fits(run, wanted)
        and (papers.same_system(run.model, model) or material.name_system(run.model) == model)
    ]


def _ask_model(
    material: PunMaterial,
    part: DeclaredPart,
    metric: PaperMetric,
    model: str,
    options: Mapping[str, str],
    place: int = 0,
) -> papers.Cell:
    """Return the cell of a model, or of a system for which the paper prints no score.

    ``place`` selects one of several runs with the same options.
    """
    runs = _find_runs(material, metric, model, options)[place:]
    cell = papers.run_cell(runs[0], metric.key, part.digits, part.scale) if runs else papers.Cell()
    if place and not runs:
        return cell
    wanted = {**options, **metric.options}
    system = material.systems.get(model)
    if not (system and system.model.startswith("detector/")):
        wanted |= material.protocol_of(metric.task)
    chosen = write_options(wanted)
    asked = material.systems[model].model if model in material.systems else model
    asked = asked if "/" in asked else f"openai/{asked}"
    fill = "" if runs else part.command(task=metric.task, options=chosen, model=asked)
    reason = part.lacking if runs else ""
    return replace(cell, fill=fill, reason=reason)


def _name_place(label: str, cells: Sequence[papers.Cell], place: int) -> str:
    """Return the label of a further run of a model, which names its folder."""
    folders = dict.fromkeys(Path(run).name for cell in cells for run in cell.runs)
    return f"{label} ({', '.join(folders)})" if place and folders else label


def _others(
    material: PunMaterial,
    part: DeclaredPart,
    options: Mapping[str, str],
    section: str = "",
    taken: Collection[Path] = (),
) -> Iterator[papers.PaperRow]:
    """Return the rows of runs that are in no row of the paper: other models, further runs."""
    found: dict[str, dict[tuple[str, str], list[papers.ScoredRun]]] = {}
    for metric in part.metrics:
        for run in material.of_task(metric.task):
            if run.folder not in taken and _fits(run, {**options, **metric.options}):
                key = (metric.task, str(metric.options))
                runs = found.setdefault(run.model, {}).setdefault(key, [])
                runs += [run] if run not in runs else []
    for model, by_task in found.items():
        theirs = material.name_system(model) in {row.system for row in part.rows}
        for place in range(max(map(len, by_task.values()))):
            cells = []
            for metric in part.metrics:
                runs = by_task.get((metric.task, str(metric.options)), [])[place:]
                cell = papers.Cell(
                    fill="" if place or theirs else _fill(part, metric, model, options)
                )
                if runs:
                    cell = papers.run_cell(runs[0], metric.key, part.digits, part.scale)
                    cell = replace(cell, reason=part.lacking)
                cells.append(cell)
            label = _name_place(model, cells, place or int(theirs))
            yield papers.PaperRow(label, tuple(cells), "own", section)


def _fill(part: DeclaredPart, metric: PaperMetric, model: str, options: Mapping[str, str]) -> str:
    chosen = write_options({**options, **metric.options})
    asked = model if "/" in model else f"openai/{model}"
    return part.command(task=metric.task, options=chosen, model=asked)


def table_2(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 2: zero-shot results with image only and with caption; models and annotators."""
    rows: list[papers.PaperRow] = []
    shown, taken = fill_systems(material, part)
    sections = {row.section: row.options for row in part.rows}
    for section, options in sections.items():
        rows += [row for row in shown if row.section == section]
        rows += _others(material, part, options, section, taken)
        rows += _people_rows(material, part, section)
    return part.show(rows)


def table_2_released(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return released results of models that Table 2 does not print; their runs are in Table 2."""
    released = read_released(material.release)
    return part.show(_beside_released(material, part, released, {"language": "zh"}))


def _beside_released(
    material: PunMaterial,
    part: DeclaredPart,
    released: Sequence[PublishedRow],
    other: Mapping[str, str],
) -> Iterator[papers.PaperRow]:
    """Return the declared rows: released values, with the runs of their systems beside them."""
    for row in part.rows:
        cells = []
        for metric in part.metrics:
            cell = _ask_model(material, part, metric, row.system, row.options)
            told = _find_released(material, released, row.system, metric, {**other, **row.options})
            cells.append(_put_beside(cell, told, part))
        yield papers.PaperRow(row.label, tuple(cells), row.kind, row.section)


def _people_rows(material: PunMaterial, part: DeclaredPart, section: str) -> list[papers.PaperRow]:
    """Return the rows of human annotators, if a run of the sentiment task has their votes."""
    for run in material.of_task("sentiment"):
        for baseline in run.results.baselines:
            if baseline.model == "annotators":
                cells = show_scores(part, {"sentiment": baseline.scores})
                bare = (
                    cell if metric.task == "sentiment" else papers.Cell()
                    for cell, metric in zip(cells, part.metrics, strict=True)
                )
                return [papers.PaperRow("annotators", tuple(bare), "baseline", section)]
    return []


def figure_4(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Figure 4: results of the seven prompts by task, for models run with more than two."""
    return _show_prompts(material, part, "zh", [row.system for row in part.rows])


def figure_4_english(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Figure 4 with English prompts, for systems with released results."""
    released = {
        material.name_system(row.system)
        for row in read_released(material.release)
        if row.options["language"] == "en" and "prompt" in row.options
    }
    explored = [row.system for row in part.rows if row.system in released]
    return _show_prompts(material, part, "en", explored)


_PROMPTED = (
    PaperMetric(task="detection", key="f1"),
    PaperMetric(task="sentiment", key="accuracy"),
    PaperMetric(task="chat", key="accuracy", options={"level": "hard"}),
)


def _show_prompts(
    material: PunMaterial, part: DeclaredPart, language: str, explored: Sequence[str]
) -> papers.PaperPart:
    """Return results by model and prompt in a language; released values replace the paper's."""
    released, other = read_released(material.release), {"language": language}
    others = dict.fromkeys(
        run.model
        for metric in _PROMPTED
        for run in material.of_task(metric.task)
        if run.facts.options["language"] == language
        and (language == "en" or run.facts.options["prompt"] not in ("1", "2"))
        and material.name_system(run.model) not in explored
    )
    rows = []
    for metric in _PROMPTED:
        section = f"{metric.task}, {metric.key}"
        for name in (*explored, *others):
            cells = []
            for number in STYLES:
                asked = {"prompt": number} | ({} if language == "zh" else other)
                cell = _ask_model(material, part, metric, name, asked)
                told = _find_released(material, released, name, metric, asked | other)
                cells.append(_put_beside(cell, told, part))
            kind: RowKind = "paper" if name in explored else "own"
            rows.append(papers.PaperRow(name, tuple(cells), kind, section))
            rows += _more_prompts(material, part, metric, name, language, section)
    tasks = " ".join(dict.fromkeys(f"{material.name}/{m.task}" for m in _PROMPTED))
    bare = papers.Cell(fill=part.command("english", task=tasks))
    return part.show(rows or [papers.PaperRow("a model", (bare,) * len(part.columns))])


def _more_prompts(
    material: PunMaterial,
    part: DeclaredPart,
    metric: PaperMetric,
    name: str,
    language: str,
    section: str,
) -> Iterator[papers.PaperRow]:
    """Return rows of the second and further runs of a model with the same prompt."""
    asked = [{"prompt": number, "language": language} for number in STYLES]
    most = max(len(_find_runs(material, metric, name, options)) for options in asked)
    for place in range(1, most):
        cells = [_ask_model(material, part, metric, name, options, place) for options in asked]
        yield papers.PaperRow(_name_place(name, cells, place), tuple(cells), "own", section)


def _find_released(
    material: PunMaterial,
    released: Sequence[PublishedRow],
    system: str,
    metric: PaperMetric,
    options: Mapping[str, str],
) -> float | None:
    wanted = {**options, **metric.options}
    for row in released:
        named = row.task == metric.task and material.is_system(row.system, system)
        if named and wanted.items() <= row.options.items():
            return row.metrics.get(metric.key)
    return None


def _put_beside(cell: papers.Cell, told: float | None, part: DeclaredPart) -> papers.Cell:
    """Return the computed value beside a released one, without a comparison."""
    return replace(cell, released=told, compared=False, digits=part.digits)


def table_4(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 4: fine-tuned models on held-out groups, and on other memes."""
    tuned = [detector for detector in material.detectors if detector.facts.get("question") == "pun"]
    rows, taken = [], set[Path]()
    for row in part.rows:
        named = (d for d in tuned if material.is_system(d.name, row.system))
        detector = next((d for d in named if d.facts["style"] == row.key), None)
        taken |= {detector.folder} if detector else set()
        cells = _tuned_cells(material, part, detector, row.key)
        pairs = zip(cells, row.printed, strict=True)
        rows.append(
            papers.PaperRow(row.label, tuple(replace(cell, paper=told) for cell, told in pairs))
        )
    for detector in tuned:
        if detector.folder not in taken:
            style = str(detector.facts["style"])
            cells = _tuned_cells(material, part, detector, style)
            rows.append(papers.PaperRow(f"{detector.name}: {part.names[style]}", cells, "own"))
    runs = [run for run in material.of_task("detection") if run.facts.split == "test"]
    for run, label in zip(runs, papers.name_runs(runs), strict=True):
        found = [papers.run_cell(run, key, part.digits, part.scale) for key in ("tpr", "tnr")]
        rows.append(papers.PaperRow(label, (*found, papers.Cell(reason=part.reason)), "own"))
    return part.show(rows)


def _tuned_cells(
    material: PunMaterial,
    part: DeclaredPart,
    detector: papers.ScoredDetector | None,
    style: str,
) -> tuple[papers.Cell, ...]:
    """Return TPR and TNR on held-out groups, and TNR on other memes."""
    chosen = f"{style} --wording official" if material.compared else style
    places = (("held out", "tpr"), ("held out", "tnr"), ("external", "tnr"))
    scores = [
        papers.find_score(detector.scores.get(name, ()), key) if detector else None
        for name, key in places
    ]
    return tuple(
        replace(papers.score_cell(score, 3, 1.0), compared=False, fill=part.command(style=chosen))
        for score in scores
    )


def table_5(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 5: proportion of harmful memes detected in ToxiCN MM, without and with a pun."""
    rows, taken = fill_systems(material, part)
    shown = [
        replace(
            row,
            cells=tuple(
                replace(cell, paper=told, compared=False)
                for cell, told in zip(row.cells, declared.printed, strict=True)
            ),
        )
        for row, declared in zip(rows, part.rows, strict=True)
    ]
    runs = material.of_task("harmful")
    for run, label in zip(runs, papers.name_runs(runs), strict=True):
        if run.folder not in taken:
            found = show_scores(part, {"harmful": run.results.scores}, run)
            empty = tuple(replace(cell, fill=part.command(model=run.model)) for cell in found)
            shown.append(papers.PaperRow(label, empty, "own"))
    if material.source.kind == "sample":
        shown = [_close(row, part.reason) if _answered(row) else row for row in shown]
    return part.show(shown)


def table_5_released(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return the released results of Table 5: all systems, and both languages of the prompt."""
    released = [row for row in read_released(material.release) if row.task == "harmful"]
    rows = list(_beside_released(material, part, released, {}))
    if material.source.kind == "sample":
        rows = [_close(row, part.reason) for row in rows]
    return part.show(rows)


def _answered(row: papers.PaperRow) -> bool:
    return any(cell.value is not None for cell in row.cells)


def _close(row: papers.PaperRow, reason: str) -> papers.PaperRow:
    """Remove the fill command of cells that sample data cannot fill."""
    return replace(row, cells=tuple(replace(cell, fill="", reason=reason) for cell in row.cells))


def table_7(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 7: results of caption transcription and pinyin."""
    rows, taken = fill_systems(material, part)
    return part.show([*rows, *_others(material, part, {}, taken=taken)])


def table_7_ways(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return transcription results with an example and in English: released values, and runs."""
    released = read_released(material.release)
    systems = dict.fromkeys(
        material.name_system(row.system) or row.system
        for row in released
        if row.task in ("ocr", "pinyin")
    )
    others = dict.fromkeys(
        run.model
        for task in ("ocr", "pinyin")
        for run in material.of_task(task)
        if run.facts.options["language"] == "en" and not material.name_system(run.model)
    )
    rows = []
    for name in (*systems, *others):
        cells = []
        for metric in part.metrics:
            asked = {k: v for k, v in metric.options.items() if k == "language"}
            plain = PaperMetric(task=metric.task, key=metric.key, options=asked)
            cell = _ask_model(material, part, plain, name, {})
            if metric.options["example"] == "one":
                cell = papers.Cell(reason=part.reason)
            told = _find_released(material, released, name, metric, {})
            cells.append(_put_beside(cell, told, part))
        rows.append(papers.PaperRow(name, tuple(cells), "paper" if name in systems else "own"))
    tasks = " ".join(dict.fromkeys(f"{material.name}/{m.task}" for m in part.metrics))
    bare = papers.Cell(fill=part.command("english", task=tasks))
    return part.show(rows or [papers.PaperRow("a model", (bare,) * len(part.columns))])


def table_8(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 8: wrong homophones, with number, type and list."""
    runs = material.of_task("punchline")
    rows, texts = [], []
    for run, label in zip(runs, papers.name_runs(runs), strict=True):
        cells = show_scores(part, {"punchline": run.results.scores}, run)
        told = tuple(replace(cell, reason=part.lacking) for cell in cells)
        rows.append(papers.PaperRow(label, told, "own"))
        listed = [s.label for s in run.results.scores if s.by == "confused"]
        if listed:
            texts.append(papers.PaperText(f"Wrong homophones of {label}", "\n".join(listed)))
    return part.show(rows or part.empty("GPT-4o"), texts)


PAPER = read_paper(
    Path(__file__).with_name("paper.toml"),
    {
        "Figure 1": figure_1,
        "Section 3.1": annotation,
        "Hard negatives": hard_negatives,
        "Table 1": table_1,
        "Table 2": table_2,
        "Table 2, released models": table_2_released,
        "Figure 4": figure_4,
        "Figure 4, English prompts": figure_4_english,
        "Table 4": table_4,
        "Table 5": table_5,
        "Table 5, released": table_5_released,
        "Table 7": table_7,
        "Table 7, other ways to ask": table_7_ways,
        "Table 8": table_8,
    },
)
