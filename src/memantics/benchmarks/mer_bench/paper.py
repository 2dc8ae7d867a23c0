"""Tables and figures of MER-Bench's paper, computed from data, judges and human ratings."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np

from memantics.benchmarks import paper
from memantics.benchmarks.mer_bench import humans
from memantics.benchmarks.mer_bench.load import ReappraisalRelease
from memantics.benchmarks.mer_bench.views import FACTORS, LEVELS
from memantics.benchmarks.paper import RowKind
from memantics.benchmarks.paper_file import DeclaredPart, read_paper, show_declared
from memantics.core.records import Score
from memantics.core.rundir import read_bare_items
from memantics.metrics.reappraisal import METRICS, components

ReappraisalMaterial = paper.PaperMaterial[ReappraisalRelease]
_SPREAD = re.compile(r"± ([\d.]+)")
_JUDGE = ("gemini-3-pro-preview",)
_SHORTEST = 4  # letters of an abbreviated folder name
_INVALID = ("a rule still broken", "no judgement")


def _choose_judges(material: ReappraisalMaterial) -> list[paper.ScoredRun]:
    """Return one run per judge model and configuration: the run with the most judgements."""
    best: dict[tuple[str, ...], paper.ScoredRun] = {}
    for run in material.of_task("judge"):
        options = run.facts.options
        setting = (options.get(option, "") for option in ("rationale", "placement", "references"))
        key = (run.model, *setting)
        if key not in best or _judged(run) > _judged(best[key]):
            best[key] = run
    return list(best.values())


def _judges(material: ReappraisalMaterial) -> dict[str, Path]:
    """Return the folder of the chosen run of each judge, by its name."""
    runs = _choose_judges(material)
    return dict(zip(_name(runs), (run.folder for run in runs), strict=True))


def _note_twins(material: ReappraisalMaterial) -> tuple[str, ...]:
    chosen = _choose_judges(material)
    others = (run for run in material.of_task("judge") if run not in chosen)
    return paper.note_unshown(others, "another run of this judge and configuration was used")


def _judged(run: paper.ScoredRun) -> int:
    return sum(run.results.counts.values())


def _studies(material: ReappraisalMaterial) -> list[humans.JudgeStudy]:
    named = _judges(material)
    studies = []
    for review in material.reviews:
        if review.card.workflow == humans.WORKFLOW:
            annotations = [one.aggregated for one in review.annotated if one.aggregated is not None]
            studies.append(humans.make_study(named, humans.read_people(review.folder, annotations)))
    return studies


def _name(runs: Sequence[paper.ScoredRun]) -> list[str]:
    """Name judges by configuration (RF-VF, …) if there is one model, else by what differs."""
    config = [f"{r.facts.options['rationale']}-{r.facts.options['placement']}" for r in runs]
    if len({run.model for run in runs}) == 1 and len(set(config)) == len(config):
        return config
    return paper.name_runs(runs)


def figure_1(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Figure 1: one meme and the emotion that its rewritten version should have."""
    rows = material.release.rows
    row = next((row for row in rows if row.caption), rows[0])
    texts = (
        paper.PaperText(f"{row.id}: {row.source_emotion}", row.caption),
        paper.PaperText(f"to {row.target_emotion}", row.rewritten),
        paper.PaperText("Visual edits", row.plan),
    )
    return part.show(texts=texts)


def figure_3(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Figure 3: the numbers of memes by category and pair of emotions."""
    shown = show_declared(material, part)
    if material.source.published:
        return shown
    # A copy with the edited images can compute this count; it equals the paper's if the editors are
    # the same.
    *rows, kept = shown.rows
    same = material.comparable and _are_theirs(material, material.release.editors())
    cell = replace(kept.cells[0], reason="", fill=f"memantics data add {material.name} DIR")
    cell = replace(cell, compared=same)
    return part.show([*rows, replace(kept, cells=(cell,))])


def figure_4(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Figure 4: human ratings of the outputs and the distance of each judge to them."""
    studies, judges = _studies(material), list(_judges(material))
    columns = (*part.columns, *(f"{name}: distance to people" for name in judges))
    names = [name.upper() for name in humans.DIMENSIONS]
    if not studies:
        return part.show(part.empty(*names, columns=len(columns)), columns=columns)
    rows = (
        paper.PaperRow(name.upper(), tuple(_people_cells(studies[0], name, part.command())))
        for name in humans.DIMENSIONS
    )
    shown = part.show(rows, notes=_note_twins(material), columns=columns)
    return replace(shown, runs=paper.list_folders(_choose_judges(material)))


def _people_cells(study: humans.JudgeStudy, name: str, fill: str) -> Iterator[paper.Cell]:
    said = [rating for by in study.people.values() for rating in by.get(name, ())]
    mean = fmean(said) if said else None
    if mean is not None and name in humans.LIKERT:
        mean = 1 + 5 * mean
    yield paper.Cell(value=mean, n=len(said), digits=2, fill=fill)
    yield _plain(next(score for score in humans.agree_among_people(study) if score.label == name))
    for score in humans.compare_with_people(study):
        if score.key == "apart" and score.label == name:
            yield replace(paper.score_cell(score, 3, 1.0), fill=fill)


def _plain(score: Score) -> paper.Cell:
    """Return a statistic unchanged, or a note that all ratings were equal if it is undefined."""
    cell = paper.score_cell(score, 2, 1.0)
    return cell if cell.value is not None else paper.Cell(reason="All ratings are the same.")


def figure_4_wins(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return the win rates of judge configurations (Figure 4)."""
    studies = _studies(material)
    if not studies or len(studies[0].judges) < 2:
        return part.show(part.empty(*(row.label for row in part.rows)), drawn=False)
    rates = humans.win_rates(studies[0])
    rows = (paper.PaperRow(rate.label, (paper.score_cell(rate, 1),), "own") for rate in rates)
    shown = part.show(rows, notes=_note_twins(material))
    return replace(shown, runs=paper.list_folders(_choose_judges(material)))


def judges(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return the agreement of several judges, or of repeated runs of one, on the same outputs."""
    # Repeats of one judge count as several judges; outputs are the same if the sampled view is the
    # same.
    views: dict[str, list[paper.ScoredRun]] = {}
    for run in material.of_task("judge"):
        views.setdefault(run.facts.options["view"], []).append(run)
    runs = max(views.values(), key=len, default=[])
    named = dict(zip(_name(runs), (run.folder for run in runs), strict=True))
    found = list(humans.agree_among_judges(humans.make_study(named, {}))) if len(named) > 1 else []
    rows = list[paper.PaperRow]()
    for name in humans.DIMENSIONS:
        scores = {score.key: score for score in found if score.label == name}
        cells = (_plain(scores["alpha"]), paper.score_cell(scores["sd"], 3, 1.0)) if scores else ()
        rows += [paper.PaperRow(name.upper(), cells)] if cells else part.empty(name.upper())
    if not found:
        return part.show(rows)
    others = (run for run in material.of_task("judge") if run not in runs)
    notes = paper.note_unshown(others, "other outputs: the runs have another view")
    return replace(part.show(rows, notes=notes), runs=paper.list_folders(runs))


def _of_view(material: ReappraisalMaterial, view: str) -> list[paper.ScoredRun]:
    return [run for run in material.of_task("judge") if run.facts.options["view"] == view]


def _metric_cells(
    material: ReappraisalMaterial,
    part: DeclaredPart,
    run: paper.ScoredRun | None,
    where: str,
    fill: str = "",
    printed_as: str = "",
) -> tuple[paper.Cell, ...]:
    """Return the twelve metrics of an editor or category (``where``: ``editor=NAME``), with SD.

    ``printed_as`` is the name of an editor in the paper.
    """
    printed = {k: v for row in material.published for k, v in row.metrics.items()}
    differs = list_judge_differences(material, run, part.label) if run is not None else ()
    cells = []
    for metric in part.metrics:
        name = f"{metric.key}[{where}]" if where else metric.key
        score = paper.find_score(run.results.scores, name) if run else None
        spread = _SPREAD.search(score.note) if score else None
        told = f"{metric.key}[editor={printed_as}]" if printed_as else name
        known = printed.get(told) if where else None
        cells.append(
            replace(
                paper.score_cell(score, part.digits),
                paper=None if known is None else round(100 * known, part.digits),
                sd=float(spread[1]) if spread else None,
                compared=not differs,
                differs=differs if known is not None else (),
                runs=(str(run.folder),) if run else (),
                origin=run.facts.origin if run and score else "",
                fill=part.command(fill) if run is None else "",
                reason="" if run is None else part.lacking,
            )
        )
    return tuple(cells)


def list_judge_differences(
    material: ReappraisalMaterial, run: paper.ScoredRun, table: str
) -> tuple[str, ...]:
    """Return how a run differs from the paper's experiment: judge, prompts, options and memes.

    Table II has a row per editor, so the editors that are there are compared. Table III pools all
    editors, so they must be those of the paper.
    """
    rows = [row for row in material.published if row.source == table]
    if not rows:
        return ("the paper prints no value",)
    if not material.comparable:
        return ("data: not the paper's complete release",)
    found = list(material.list_run_differences(run, rows[0]))
    if not any(paper.same_system(run.model, name) for name in _JUDGE):
        found.append(f"judge: {run.model} instead of {_JUDGE[0]}")
    items = list(read_bare_items(run.folder))
    editors = {item.tags.get("editor", "") for item in items}
    theirs = _are_theirs(material, editors)
    if table != "Table II" and not theirs:
        found.append(f"editors: {_count_editors(material, editors)}, and the value pools them")
    printed = material.expected["kept"].paper
    kept = {item.tags.get("kept", "").partition("/")[0] for item in items}
    wanted = int(printed) if isinstance(printed, int | float) else 0
    # Fewer editors keep more memes: a meme is kept if all editors have edited it.
    enough = all(count.isdecimal() and int(count) >= wanted for count in kept)
    if kept != {str(printed)} and (theirs or not enough):
        found.append(f"memes: {', '.join(sorted(kept))} kept instead of {wanted:,}")
    return tuple(found)


def name_editor(material: ReappraisalMaterial, folder: str) -> str:
    """Return the paper's name of an editor's folder; empty if it is not in the paper.

    The release abbreviates folder names, such as ``In-Co…``: a beginning that only one editor has
    is enough.
    """
    if named := material.name_system(folder):
        return named
    start = _strip(folder)
    if len(start) < _SHORTEST or not folder.endswith(("…", "...", "_")):
        return ""
    found = [
        name
        for name in material.systems
        if any(_strip(known).startswith(start) for known in material.names_of(name))
    ]
    return found[0] if len(found) == 1 else ""


def _strip(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "", name.casefold())


def _count_editors(material: ReappraisalMaterial, editors: Collection[str]) -> str:
    found = {name_editor(material, editor) for editor in editors} - {""}
    others = sum(not name_editor(material, editor) for editor in editors)
    more = f" and {others} other{'s' if others > 1 else ''}" if others else ""
    return f"{len(found)} of the paper's {len(material.systems)}{more}"


def _are_theirs(material: ReappraisalMaterial, editors: Collection[str]) -> bool:
    """Return whether the editors are exactly those of the paper."""
    found = {name_editor(material, editor) for editor in editors} - {""}
    return len(editors) == len(material.systems) == len(found)


def table_2(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Table 2: editors by metric; ten runs of a hundred memes that all editors share."""
    runs = _of_view(material, "model")
    rows, notes = [], list[str]()
    for run, judge in zip(runs, _name(runs), strict=True):
        section = f"judged by {run.model} ({judge})" if judge != run.model else f"judged by {judge}"
        found = {s.label for s in run.results.scores if s.by == "editor"}
        named = {editor: name_editor(material, editor) for editor in sorted(found)}
        notes.append(f"{section}: {_count_editors(material, found)} editors.")
        order = [*material.systems, ""]
        for editor in sorted(named, key=lambda e: (order.index(named[e]), e)):
            cells = _metric_cells(material, part, run, f"editor={editor}", printed_as=named[editor])
            kind: RowKind = "paper" if named[editor] else "own"
            rows.append(paper.PaperRow(named[editor] or editor, cells, kind, section))
    if not runs or material.compared:
        known = {row.label for row in rows}
        for name in material.systems:
            if name not in known:
                cells = _metric_cells(material, part, None, f"editor={name}", "edit")
                rows.append(paper.PaperRow(name, cells, section="the paper's editors"))
    return part.show(rows, notes=notes)


def table_3(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Table 3: categories by metric, over ten runs of fifty edits each from all editors."""
    runs = _of_view(material, "category")
    shown: list[paper.ScoredRun | None] = [*runs] or [None]
    rows = []
    for row in part.rows:
        for run in shown:
            more = f", {run.model}" if len(runs) > 1 and run is not None else ""
            cells = _metric_cells(material, part, run, row.key)
            rows.append(paper.PaperRow(row.label, cells, section=f"{row.section}{more}"))
    return part.show(rows)


def figure_5(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Figure 5: the RFS (overall score) of every editor in every category."""
    runs = [r for r in _of_view(material, "model") or _of_view(material, "all") if _crossed(r)]
    levels = [(factor, level) for factor in FACTORS for level in LEVELS[factor]]
    rows = []
    for run, judge in zip(runs, _name(runs), strict=True):
        for editor in _crossed(run):
            cells = []
            for factor, level in levels:
                by = f"editor × {factor}"
                score = paper.find_score(run.results.scores, f"rfs_run[{by}={editor} × {level}]")
                origin = run.facts.origin if score else ""
                missing = "" if score else part.lacking
                runs_of = (str(run.folder),)
                cell = replace(paper.score_cell(score), reason=missing, origin=origin, runs=runs_of)
                cells.append(cell)
            label = name_editor(material, editor) or editor
            rows.append(paper.PaperRow(label, tuple(cells), "own", f"judged by {judge}"))
    return part.show(rows or part.empty(*material.systems))


def _crossed(run: paper.ScoredRun) -> list[str]:
    """Return the editors whose scores are broken down by category in a run."""
    labels = (s.label for s in run.results.scores if s.by.startswith("editor × "))
    return list(dict.fromkeys(label.partition(" × ")[0] for label in labels))


def figure_5_overall(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return all metrics over all edits (Figure 5, overall)."""
    runs = _of_view(material, "overall")
    rows = [
        paper.PaperRow(judge, _metric_cells(material, part, run, ""), "own")
        for run, judge in zip(runs, _name(runs), strict=True)
    ]
    bare = paper.PaperRow("all editors", _metric_cells(material, part, None, ""), "own")
    return part.show(rows or [bare])


def repeated(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return scores from judgements averaged per output; the target hit is then a fraction."""
    rows = list[paper.PaperRow]()
    runs = [r for r in material.of_task("judge") if len(material.repeats_of(r)) > 1]
    firsts = [run for run in runs if material.repeats_of(run)[0] is run]
    for run, judge in zip(firsts, _name(firsts), strict=True):
        folders = {str(n): r.folder for n, r in enumerate(material.repeats_of(run))}
        judged = list(humans.make_study(folders, {}).judges.values())
        shared = sorted(set(judged[0]).intersection(*judged))
        ratings = np.array([[[j[pair][m] for m in METRICS] for j in judged] for pair in shared])
        if not shared:
            continue
        means = ratings.mean(axis=1)
        hits = means[:, METRICS.index("ppe")]
        split = float(((hits > 0) & (hits < 1)).mean())
        section = f"{judge}, {len(judged)} times"
        whole = (("averaged first", means), ("each alone", ratings.reshape(-1, len(METRICS))))
        for label, units in whole:
            shares = (split if label == "averaged first" else 0.0, float(hits.mean()))
            values = (*shares, *components(units).mean(axis=0))
            cells = (
                paper.Cell(value=100 * float(v), n=len(units), digits=part.digits) for v in values
            )
            rows.append(paper.PaperRow(label, tuple(cells), "own", section))
    return replace(part.show(rows or part.empty("a judge")), runs=paper.list_folders(runs))


def figure_6(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return Figure 6: how often each editor fails in each way that the paper describes."""
    rows = []
    runs = [r for r in material.of_task("judge") if material.repeats_of(r)[0] is r]
    for run, judge in zip(runs, _name(runs), strict=True):
        bys = (s.by for s in run.results.scores if s.by.split(", ")[0] == "failure")
        for by in dict.fromkeys(bys):
            editor = by.partition(", ")[2]
            cells = []
            for name in part.columns:
                score = paper.find_score(run.results.scores, f"proportion[{by}={name}]")
                missing = "" if score else part.lacking
                cell = replace(paper.score_cell(score, 1), reason=missing)
                cells.append(replace(cell, origin=run.facts.origin, runs=(str(run.folder),)))
            label = name_editor(material, editor) or editor or "all editors"
            rows.append(paper.PaperRow(label, tuple(cells), "own", f"judged by {judge}"))
    return part.show(rows or part.empty("an editor"))


def invalid(material: ReappraisalMaterial, part: DeclaredPart) -> paper.PaperPart:
    """Return the effect of counting or dropping judge replies that stay invalid."""
    runs = material.of_task("judge")
    rows = []
    for run, judge in zip(runs, _name(runs), strict=True):
        scores, main = run.results.scores, run.results.main
        by = "invalid after the last attempt"
        shares = [paper.find_score(scores, f"proportion[{by}={status}]") for status in _INVALID]
        share = sum(score.value or 0 for score in shares if score)
        ways = [
            paper.find_score(scores, f"{main}[invalid replies counted as={way}]")
            or paper.find_score(scores, main)
            for way in part.columns[1:]
        ]
        n = shares[0].n if shares[0] else 0
        first = paper.Cell(value=100 * share, digits=1, n=n, runs=(str(run.folder),))
        rows.append(paper.PaperRow(judge, (first, *map(paper.score_cell, ways)), "own"))
    return part.show(rows or part.empty("a judge"))


PAPER = read_paper(
    Path(__file__).with_name("paper.toml"),
    {
        "Figure 1": figure_1,
        "Figure 3": figure_3,
        "Figure 4": figure_4,
        "Figure 4, win rates": figure_4_wins,
        "Judges": judges,
        "Table II": table_2,
        "Table III": table_3,
        "Figure 5 (a) to (n)": figure_5,
        "Figure 5 (o)": figure_5_overall,
        "Repeated judgements": repeated,
        "Invalid replies": invalid,
        "Figure 6": figure_6,
    },
)
