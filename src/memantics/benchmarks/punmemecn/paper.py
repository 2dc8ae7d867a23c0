"""Tables and figures of PunMemeCN's paper, computed from data, runs and annotations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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


def _ask_model(
    material: PunMaterial,
    part: DeclaredPart,
    metric: PaperMetric,
    model: str,
    options: Mapping[str, str],
) -> papers.Cell:
    """Return the cell of a model, or of a system for which the paper prints no score."""
    wanted = {**options, **metric.options}
    named = [r for r in material.of_task(metric.task) if _fits(r, wanted)]
    runs = [
        r
        for r in named
        if papers.same_system(r.model, model) or material.name_system(r.model) == model
    ]
    cell = papers.run_cell(runs[0], metric.key, part.digits, part.scale) if runs else papers.Cell()
    chosen = " ".join(f"--set {name}={value}" for name, value in wanted.items())
    asked = material.systems[model].model if model in material.systems else model
    asked = asked if "/" in asked else f"openai/{asked}"
    fill = "" if runs else part.command(task=metric.task, options=chosen, model=asked)
    reason = part.lacking if runs else ""
    return replace(cell, fill=fill, reason=reason)


def _others(
    material: PunMaterial, part: DeclaredPart, options: Mapping[str, str], section: str = ""
) -> Iterator[papers.PaperRow]:
    """Return the rows of the user's models that are not in the paper."""
    models = dict.fromkeys(
        run.model
        for metric in part.metrics
        for run in material.of_task(metric.task)
        if _fits(run, {**options, **metric.options})
        and material.name_system(run.model) not in {row.system for row in part.rows}
    )
    for model in models:
        cells = (_ask_model(material, part, metric, model, options) for metric in part.metrics)
        yield papers.PaperRow(model, tuple(cells), "own", section)


def table_2(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 2: zero-shot results with image only and with caption; models and annotators."""
    rows: list[papers.PaperRow] = []
    shown, _ = fill_systems(material, part)
    sections = {row.section: row.options for row in part.rows}
    for section, options in sections.items():
        rows += [row for row in shown if row.section == section]
        rows += _others(material, part, options, section)
        rows += _people_rows(material, part, section)
    return part.show(rows)


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
    bare = papers.Cell(fill=part.command("english"))
    return part.show(rows or [papers.PaperRow("a model", (bare,) * len(part.columns))])


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
    return replace(cell, paper=told, compared=False, digits=part.digits, printed="released")


def table_4(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 4: fine-tuned models on held-out groups, and on other memes."""
    tuned = [detector for detector in material.detectors if detector.facts.get("question") == "pun"]
    rows, taken = [], set[Path]()
    for row in part.rows:
        named = (d for d in tuned if material.is_system(d.name, row.system))
        detector = next((d for d in named if d.facts["style"] == row.key), None)
        taken |= {detector.folder} if detector else set()
        cells = _tuned_cells(part, detector, row.key)
        pairs = zip(cells, row.printed, strict=True)
        rows.append(
            papers.PaperRow(row.label, tuple(replace(cell, paper=told) for cell, told in pairs))
        )
    for detector in tuned:
        if detector.folder not in taken:
            style = str(detector.facts["style"])
            cells = _tuned_cells(part, detector, style)
            rows.append(papers.PaperRow(f"{detector.name}: {part.names[style]}", cells, "own"))
    runs = [run for run in material.of_task("detection") if run.facts.split == "test"]
    for run, label in zip(runs, papers.name_runs(runs), strict=True):
        found = [papers.run_cell(run, key, part.digits, part.scale) for key in ("tpr", "tnr")]
        rows.append(papers.PaperRow(label, (*found, papers.Cell(reason=part.reason)), "own"))
    return part.show(rows)


def _tuned_cells(
    part: DeclaredPart, detector: papers.ScoredDetector | None, style: str
) -> tuple[papers.Cell, ...]:
    """Return TPR and TNR on held-out groups, and TNR on other memes."""
    places = (("held out", "tpr"), ("held out", "tnr"), ("external", "tnr"))
    scores = [
        papers.find_score(detector.scores.get(name, ()), key) if detector else None
        for name, key in places
    ]
    return tuple(
        replace(papers.score_cell(score, 3, 1.0), compared=False, fill=part.command(style=style))
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
            found = show_scores(part, {"harmful": run.results.scores}, run.facts.origin)
            empty = tuple(replace(cell, fill=part.command(model=run.model)) for cell in found)
            shown.append(papers.PaperRow(label, empty, "own"))
    if material.source.kind == "sample":
        shown = [_close(row, part.reason) if _answered(row) else row for row in shown]
    return part.show(shown)


def _answered(row: papers.PaperRow) -> bool:
    return any(cell.value is not None for cell in row.cells)


def _close(row: papers.PaperRow, reason: str) -> papers.PaperRow:
    """Remove the fill command of cells that sample data cannot fill."""
    return replace(row, cells=tuple(replace(cell, fill="", reason=reason) for cell in row.cells))


def table_7(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 7: results of caption transcription and pinyin."""
    rows, _ = fill_systems(material, part)
    return part.show([*rows, *_others(material, part, {})])


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
    bare = papers.Cell(fill=part.command("english"))
    return part.show(rows or [papers.PaperRow("a model", (bare,) * len(part.columns))])


def table_8(material: PunMaterial, part: DeclaredPart) -> papers.PaperPart:
    """Return Table 8: wrong homophones, with number, type and list."""
    runs = material.of_task("punchline")
    rows, texts = [], []
    for run, label in zip(runs, papers.name_runs(runs), strict=True):
        cells = show_scores(part, {"punchline": run.results.scores}, run.facts.origin)
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
        "Look-alikes": hard_negatives,
        "Table 1": table_1,
        "Table 2": table_2,
        "Figure 4": figure_4,
        "Figure 4, English prompts": figure_4_english,
        "Table 4": table_4,
        "Table 5": table_5,
        "Table 7": table_7,
        "Table 7, other ways to ask": table_7_ways,
        "Table 8": table_8,
    },
)
