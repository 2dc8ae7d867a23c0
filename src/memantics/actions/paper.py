"""``paper``: every table and figure of a benchmark's paper, redone from the material at hand."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, JsonValue, TypeAdapter, ValidationError

from memantics.actions.options import RunLike
from memantics.actions.report import find_folder
from memantics.core.card import Card
from memantics.core.data import Source, conform, read_json, read_jsonl
from memantics.core.errors import DataError, InputError, UnknownName, first_fault
from memantics.core.paper import PaperMaterial, PaperPart, ScoredDetector
from memantics.core.parameters import Argument, Data, Flag
from memantics.core.published import read_published
from memantics.core.queue import CARD, VERDICTS, Review, read_review
from memantics.core.records import Score
from memantics.core.result import to_plain
from memantics.detector.card import place_card
from memantics.detector.lora.judging import FACTS as TUNED
from memantics.detector.study.running import STUDY, read_study, read_verdicts
from memantics.registry import Benchmark, describe_data, find_benchmark, find_source
from memantics.report.pages.paper import RedonePaper
from memantics.report.runs import Run, load_runs
from memantics.tasks.factories import share

__all__ = ["PaperForm", "RedonePaper", "paper"]
PaperForm = Literal["html", "md", "latex", "csv", "json"]
Paths = str | Path | Sequence[str | Path]
_SCORES = TypeAdapter(dict[str, tuple[Score, ...]])


def paper(
    name: Annotated[
        str, Argument("A benchmark, or one that you published in its family's format.")
    ],
    runs: Annotated[
        RunLike | Sequence[RunLike], Argument("Run directories.", metavar="[RUN]...")
    ] = (),
    *,
    data: Data = None,
    verdicts: Annotated[
        Paths, Flag("A reviewed queue, or its verdicts.jsonl; may be repeated.")
    ] = (),
    detectors: Annotated[
        Paths,
        Flag("A trained detector, or the folder of a 'detector study'; may be repeated."),
    ] = (),
    traits: Annotated[
        str | Path | None,
        Flag("A CSV table of models and their traits; results are grouped by them."),
    ] = None,
    figures: Annotated[
        Paths, Flag("Figures that another command measured (JSON); may be repeated.")
    ] = (),
    parts: Annotated[
        Sequence[str], Flag("Only this table or figure ('Table 5'); may be repeated.", "--part")
    ] = (),
) -> RedonePaper:
    """Redo a benchmark's paper: its tables and figures from your data, runs, verdicts, detectors.

    Each cell holds the paper's value, the one computed here with its interval, and whether they
    agree; an empty cell names the command that fills it. ``name`` may be a published benchmark: it
    is shown in the tables of its family's paper. ``save`` writes the page.
    """
    benchmark = find_benchmark(name)
    card, declared = benchmark.card, benchmark.paper
    source = find_source(benchmark, data)
    folders = [find_folder(run) for run in ([runs] if isinstance(runs, RunLike) else runs)]
    release = benchmark.open(source)
    material = PaperMaterial(
        name=card.name,
        source=source,
        release=release,
        expected={row.key: row for row in benchmark.expect()},
        values={**benchmark.recompute(release), **_read_figures(_list(figures))},
        published=read_published(benchmark.home / "expected" / "published.json"),
        compared=source.official,
        complete=_is_whole(benchmark, source),
        runs=_load(folders, benchmark) if folders else (),
        reviews=[_read_verdicts(path) for path in _list(verdicts)],
        detectors=[row for path in _list(detectors) for row in _read_detectors(path)],
        traits=_read_traits(Path(traits)) if traits else {},
        systems=declared.systems,
    )
    return _fill(benchmark, material, declared, parts)


def _fill(
    benchmark: Benchmark, material: PaperMaterial[Any], declared: Any, parts: Sequence[str]
) -> RedonePaper:
    card, source = benchmark.card, material.source
    return RedonePaper(
        name=card.name,
        title=_title(card, declared.title),
        citation=card.citation,
        warning=card.warning if source.kind == "release" else "",
        about=tuple(_describe(benchmark, material)),
        parts=_choose(declared.fill(material), parts),
        sample=source.kind == "starter",
    )


def _choose(parts: tuple[PaperPart, ...], wanted: Sequence[str]) -> tuple[PaperPart, ...]:
    """The parts of these labels; what follows a comma ("Table 5, tests") belongs to them."""
    kept = []
    for name in wanted:
        found = [
            part for part in parts if f"{part.label},".casefold().startswith(f"{name},".casefold())
        ]
        if not found:
            raise UnknownName("table or figure", name, [part.label for part in parts])
        kept += found
    return tuple(part for part in parts if part in kept) if wanted else parts


def _title(card: Card, paper: str) -> str:
    """A benchmark of one's own stands in the tables of its family's paper."""
    return f"{card.title}, in the tables of {paper.partition(':')[0]}" if card.like else paper


def _list(paths: Paths) -> list[Path]:
    return [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]


def _load(folders: Sequence[Path], benchmark: Benchmark) -> tuple[Run, ...]:
    runs = load_runs(folders)
    for run in runs:
        if run.facts.benchmark != benchmark.card.name:
            raise InputError(
                f"{run.folder} is a run of {run.facts.benchmark}, not of {benchmark.card.name}",
                hint=f"memantics paper {run.facts.benchmark} {run.folder}",
            )
    return runs


def _is_whole(benchmark: Benchmark, source: Source) -> bool:
    release = benchmark.card.release
    return release is None or describe_data(benchmark, source).records >= release.complete


def _describe(benchmark: Benchmark, material: PaperMaterial[Any]) -> Iterator[str]:
    source, card = material.source, benchmark.card
    facts, part = describe_data(benchmark, source), ""
    if card.release and material.compared and not material.complete:
        part = f", a part of the release's {card.release.complete:,} (not compared with the paper)"
    kind = "published data" if card.like else f"{source.kind} data"
    yield f"Data: {kind}, {facts.records:,} records{part}, checksum {facts.checksum[:12]}."
    counts = {
        "run": len(material.runs),
        "reviewed queue": len(material.reviews),
        "detector": len(material.detectors),
    }
    given = [f"{n} {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n]
    yield f"Given: {', '.join(given)}." if given else "No runs, verdicts or detectors were given."
    if any(run.facts.data.get("checksum") != facts.checksum for run in material.runs):
        yield "Some runs were asked on other data than those that the statistics come from."


def _read_verdicts(path: Path) -> Review:
    """A queue that people judged: its folder, or its file of verdicts."""
    if path.is_dir():
        return read_review(path, None)
    if not path.is_file():
        raise InputError(f"no such file: {path}", hint="give a queue's folder or its verdicts")
    for queue in (path.parent, path.parent / "queue"):
        if (queue / CARD).is_file():
            return read_review(queue, path)
    raise InputError(
        f"{path}: no queue beside these verdicts",
        hint=f"put {VERDICTS} into the folder of its queue",
    )


def _read_detectors(path: Path) -> list[ScoredDetector]:
    """The detectors of a study by variant, a model tuned by LoRA, or one detector."""
    if (path / TUNED).is_file():
        return [_read_tuned(path)]
    if not (path / STUDY).is_file():
        return [_read_detector(path)]
    study = read_study(path)
    said = read_verdicts(path, study)
    names = {"harmful": "detection", "type": "type"}
    facts: dict[str, JsonValue] = {"study": study.data, "tested_on": study.tested_on}
    found = []
    for variant in dict.fromkeys(row.variant for row in study.rows):
        rows = [row for row in study.rows if row.variant == variant]
        contrasts = [
            to_plain(contrast) for contrast in study.contrasts if contrast.second == variant
        ]
        fields = {**facts, "settings": dict(rows[0].settings), "contrasts": contrasts}
        scores = {names[row.task]: row.scores for row in rows}
        found.append(ScoredDetector(variant, path, fields, scores, said.get(variant, {})))
    return found


def _read_detector(path: Path) -> ScoredDetector:
    """A detector's figures, from the card beside it."""
    card = path if path.name.endswith(".card.json") else place_card(path)[1]
    try:
        facts: Mapping[str, JsonValue] = json.loads(card.read_bytes())
        scores = _SCORES.validate_python(facts["figures"])
    except FileNotFoundError:
        raise InputError(
            f"{path}: no card beside it", hint="'memantics detector train' writes one"
        ) from None
    except ValidationError as error:
        raise DataError(card, first_fault(error), hint="train the detector again") from error
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise DataError(card, f"is no detector's card: {error}") from error
    return ScoredDetector(str(facts.get("name", path.stem)), path, facts, scores)


class _Verdict(BaseModel):
    """A line of a tuned model's verdicts."""

    part: str
    id: str
    gold: bool
    said: bool | None


def _read_tuned(path: Path) -> ScoredDetector:
    """A model tuned by LoRA: how it judged held-out groups, and memes from elsewhere."""
    facts = read_json(path / TUNED)
    if not isinstance(facts, dict) or not isinstance(wording := facts.get("wording"), dict):
        raise DataError(path / TUNED, "says nothing of how the model was asked", hint="tune again")
    if "task" in wording:
        raise InputError(
            f"{path} writes answers and has no verdicts",
            hint=f"memantics run {wording['task']} --model detector/{path}, and give that run",
        )
    lines = path / "verdicts.jsonl"
    rows = [conform(_Verdict, value, lines, number) for number, value in read_jsonl(lines)]
    scores: dict[str, tuple[Score, ...]] = {}
    for name, part in (("held out", "valid"), ("external", "external")):
        found = []
        for key, gold in (("tpr", True), ("tnr", False)):
            verdicts = [row for row in rows if row.part == part and row.gold is gold]
            found.append(
                share(key, [row.said is gold for row in verdicts], [row.id for row in verdicts])
            )
        scores[name] = tuple(found)
    asked = {"question": wording.get("question"), "style": wording.get("style")}
    return ScoredDetector(str(facts.get("model", path.name)), path, {**facts, **asked}, scores)


def _read_figures(paths: Sequence[Path]) -> dict[str, JsonValue]:
    """Figures by key, as ``build chat-quality --out`` writes them."""
    found: dict[str, JsonValue] = {}
    for path in paths:
        groups = read_json(path)
        if not isinstance(groups, dict):
            raise DataError(path, "is no table of figures by key")
        found |= groups
    return found


def _read_traits(path: Path) -> dict[str, dict[str, str]]:
    """Models and their traits: a table with a heading; the first column names the model."""
    try:
        rows = list(csv.DictReader(path.read_text(encoding="utf-8-sig").splitlines()))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(
            f"{path}: cannot be read: {error}", hint="a CSV file in UTF-8 with a heading"
        ) from error
    found: dict[str, dict[str, str]] = {}
    for number, row in enumerate(rows, 2):
        names = [name for name in row if name is not None]
        if None in row or None in row.values() or len(names) < 2:
            raise DataError(
                path, "does not have a cell for each column", row=number, hint="model,trait,…"
            )
        first, *traits = names
        found[row[first].strip()] = {name.strip(): row[name].strip() for name in traits}
    if not found:
        raise DataError(path, "names no model", hint="model,trait,… and a line for each model")
    return found
