"""The tables of PunMemeCN's paper that compare models."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from memantics.benchmarks.punmemecn.load import PunRelease
from memantics.benchmarks.punmemecn.wording import STYLES
from memantics.core.paper import (
    Cell,
    PaperMaterial,
    PaperPart,
    PaperRow,
    PaperText,
    ScoredDetector,
    ScoredRun,
    find_score,
    name_runs,
    same_system,
    score_cell,
)
from memantics.core.records import Score

Material = PaperMaterial[PunRelease]
SYSTEMS = {
    "MiniCPM-V-2.6": "openbmb/MiniCPM-V-2_6",
    "LLaVA-OneVision-7B": "lmms-lab/llava-onevision-qwen2-7b-ov",
    "LLaVA-OneVision-72B": "lmms-lab/llava-onevision-qwen2-72b-ov-chat",
    "Qwen2.5-VL-7B": "Qwen/Qwen2.5-VL-7B-Instruct",
    "Qwen2.5-VL-72B": "Qwen/Qwen2.5-VL-72B-Instruct",
    "InternVL-2.5-8B": "OpenGVLab/InternVL2_5-8B",
    "InternVL-2.5-26B": "OpenGVLab/InternVL2_5-26B",
    "InternVL-2.5-38B": "OpenGVLab/InternVL2_5-38B",
    "InternVL-2.5-78B": "OpenGVLab/InternVL2_5-78B",
    "Claude-3.5-Sonnet": "claude-3-5-sonnet-20241022",
    "GPT-4o": "gpt-4o-2024-08-06",
}
EXPLORED = ("Qwen2.5-VL-7B", "InternVL-2.5-78B", "Claude-3.5-Sonnet", "GPT-4o")
# What a tuned model sees, by the styles of "detector tune", in the order of Table 4's rows.
TUNED = {
    "image": "image",
    "caption": "image and caption",
    "reasons": "image and caption, reasons",
}
EXTERNAL = (0.977, 0.990, 0.971, 0.993, 0.886, 0.824)
_ASIDE = "A run asks about memes of this benchmark alone; tuning judges others (--external)."


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table of systems: a figure of a task asked with certain options."""

    title: str
    task: str
    figure: str
    options: Mapping[str, str]


def _columns(prompt: str) -> tuple[Column, ...]:
    names = {"prompt": prompt}
    return (
        *(Column(k.upper(), "detection", k, names) for k in ("tpr", "tnr", "f1")),
        Column("Acc target", "sentiment", "target_accuracy", names),
        Column("Acc type", "sentiment", "type_accuracy", names),
        Column("Acc overall", "sentiment", "accuracy", names),
        Column("Acc hard", "chat", "accuracy", {**names, "level": "hard"}),
        Column("Acc easy", "chat", "accuracy", {**names, "level": "easy"}),
    )


def _fits(run: ScoredRun, column: Column) -> bool:
    asked = run.facts.options
    return all(asked.get(name, value) == value for name, value in column.options.items())


def _cell(
    material: Material, column: Column, is_model: Callable[[ScoredRun], bool], system: str
) -> Cell:
    """The paper's figure of a system beside that of a run of it."""
    runs = [r for r in material.of_task(column.task) if is_model(r) and _fits(r, column)]
    score = find_score(runs[0].figures.scores, column.figure) if runs else None
    printed = next(
        (
            row.figures[column.figure]
            for row in material.rows_of(column.task, "Table 2")
            if row.system == system
            and column.figure in row.figures
            and all(row.options.get(name, value) == value for name, value in column.options.items())
        ),
        None,
    )
    chosen = " ".join(f"--set {name}={value}" for name, value in column.options.items())
    fill = f"memantics run {material.name}/{column.task} --model MODEL {chosen}"
    compared = bool(runs) and material.compares(runs[0]) and runs[0].facts.split == "all"
    return replace(
        score_cell(score, 3, 1.0),
        paper=printed,
        compared=compared,
        fill="" if runs else fill,
        reason="The run asked about no item that this figure counts." if runs else "",
    )


def table_2(material: Material) -> PaperPart:
    """Zero-shot results: image alone, and with the caption."""
    rows: list[PaperRow] = []
    for prompt, section in (
        ("1", "Only Input Meme Image (Embedded Optical Caption)"),
        ("2", "Input Both Meme Image and Caption Text"),
    ):
        columns = _columns(prompt)
        for system, model in SYSTEMS.items():

            def is_model(run: ScoredRun, names: tuple[str, str] = (system, model)) -> bool:
                return any(same_system(run.model, name) for name in names)

            cells = tuple(_cell(material, column, is_model, system) for column in columns)
            rows.append(PaperRow(system, cells, section=section))
        rows += _own_rows(material, columns, section)
        rows += _people_rows(material, columns, section)
    return PaperPart(
        "Table 2",
        "Zero-shot evaluation.",
        tuple(column.title for column in _columns("1")),
        tuple(rows),
        "Model",
        shaded=True,
        notes=(
            "Always “pun” has an F1 of 0.500; balanced accuracy is in the report of a run.",
            "Annotators: on the items that models get, against the final label that they voted on.",
            "MODEL is an endpoint of Table 6, or a model of yours, which gets a row of its own.",
        ),
    )


def _own_rows(material: Material, columns: Sequence[Column], section: str) -> list[PaperRow]:
    """The user's other models."""
    known = (*SYSTEMS, *SYSTEMS.values())
    models = dict.fromkeys(
        run.model
        for column in columns
        for run in material.of_task(column.task)
        if _fits(run, column) and not any(same_system(run.model, name) for name in known)
    )
    rows = []
    for model in models:

        def is_model(run: ScoredRun, name: str = model) -> bool:
            return run.model == name

        cells = tuple(_cell(material, value, is_model, "") for value in columns)
        rows.append(PaperRow(model, cells, "own", section))
    return rows


def _people_rows(material: Material, columns: Sequence[Column], section: str) -> list[PaperRow]:
    """The annotators, where a run of the sentiment task knows their votes."""
    for run in material.of_task("sentiment"):
        found = {baseline.model: baseline.scores for baseline in run.figures.baselines}
        if "annotators" in found:
            cells = [
                score_cell(find_score(found["annotators"], column.figure), 3, 1.0)
                if column.task == "sentiment"
                else Cell()
                for column in columns
            ]
            return [PaperRow("annotators", tuple(cells), "baseline", section)]
    return []


def figure_4(material: Material) -> PaperPart:
    """The seven prompts, task by task: of models that were asked more than prompts 1 and 2."""
    wanted = (("detection", "f1"), ("sentiment", "accuracy"), ("chat", "accuracy"))
    models = dict.fromkeys(
        run.model
        for task, _ in wanted
        for run in material.of_task(task)
        if run.facts.options["prompt"] not in ("1", "2") or _is_system(run.model, EXPLORED)
    ) or dict.fromkeys(EXPLORED)
    rows = []
    for task, figure in wanted:
        for model in models:
            cells = []
            for number in STYLES:
                options = {"prompt": number} | ({"level": "hard"} if task == "chat" else {})
                column = Column("", task, figure, options)

                def is_model(run: ScoredRun, name: str = model) -> bool:
                    return run.model == name

                cells.append(_cell(material, column, is_model, ""))
            rows.append(PaperRow(model, tuple(cells), "own", f"{task}, {figure}"))
    return PaperPart(
        "Figure 4",
        "Prompt engineering: F1 of detection, overall sentiment, hard chats.",
        tuple(f"Prompt {number}" for number in STYLES),
        tuple(rows),
        "Model",
    )


def _is_system(model: str, systems: Iterable[str]) -> bool:
    return any(same_system(model, name) for system in systems for name in (system, SYSTEMS[system]))


def table_4(material: Material) -> PaperPart:
    """Fine-tuned models on held-out groups, and on memes from elsewhere."""
    tuned = [detector for detector in material.detectors if detector.facts.get("question") == "pun"]
    rows, taken = [], set[object]()
    for place, row in enumerate(material.rows_of("detection", "Table 4")):
        style, system = list(TUNED)[place % 3], row.system.partition(",")[0]
        detector = next(
            (d for d in tuned if d.facts["style"] == style and _is_system(d.name, (system,))), None
        )
        taken |= {detector.folder} if detector else set()
        printed = (row.figures["tpr"], row.figures["tnr"], EXTERNAL[place])
        cells = _tuned_cells(material.name, detector, style, printed)
        rows.append(PaperRow(f"{row.system}: {TUNED[style]}", cells))
    for detector in tuned:
        if detector.folder not in taken:
            style = str(detector.facts["style"])
            cells = _tuned_cells(material.name, detector, style)
            rows.append(PaperRow(f"{detector.name}: {TUNED[style]}", cells, "own"))
    runs = [run for run in material.of_task("detection") if run.facts.split == "test"]
    for run, label in zip(runs, name_runs(runs), strict=True):
        found = [score_cell(find_score(run.figures.scores, key), 3, 1.0) for key in ("tpr", "tnr")]
        rows.append(PaperRow(label, (*found, Cell(reason=_ASIDE)), "own"))
    return PaperPart(
        "Table 4",
        "Fine-tuned models: detection on held-out groups, and on other memes that are no puns.",
        ("TPR", "TNR", "External TNR"),
        tuple(rows),
        "Model",
        notes=(
            "The authors' 153 groups are not known: tuning holds as large a share out by its seed.",
            "External: about 1,000 memes of ChineseBQB; any folder of memes that are no puns does.",
        ),
    )


def _tuned_cells(
    name: str,
    detector: ScoredDetector | None,
    style: str,
    printed: Sequence[float | None] = (None,) * 3,
) -> tuple[Cell, ...]:
    """TPR and TNR on held-out groups, TNR on other memes."""
    fill = (
        f"memantics detector tune MODEL --style {style} --external FOLDER --out TUNED; "
        f"memantics paper {name} --detectors TUNED"
    )
    places = (("held out", "tpr"), ("held out", "tnr"), ("external", "tnr"))
    scores = [
        find_score(detector.scores.get(part, ()), key) if detector else None for part, key in places
    ]
    return tuple(
        replace(score_cell(score, 3, 1.0), paper=paper, compared=False, fill=fill)
        for score, paper in zip(scores, printed, strict=True)
    )


def table_5(material: Material) -> PaperPart:
    """Harmful memes found: of ToxiCN MM, without a pun, behind a pun."""
    keys = ("recall_toxicn", "recall_nonpun", "drop_nonpun", "recall_pun", "drop_pun")
    rows, taken = [], set[object]()
    for row in material.rows_of("harmful", "Table 5"):
        system = row.system.partition(",")[0]
        run = material.find_run(row, SYSTEMS.get(system, system))
        taken |= {run.folder} if run else set()
        rows.append(PaperRow(row.system, tuple(_harm_cells(material, run, row.figures, keys))))
    runs = material.of_task("harmful")
    for run, label in zip(runs, name_runs(runs), strict=True):
        if run.folder not in taken:
            rows.append(PaperRow(label, tuple(_harm_cells(material, run, {}, keys)), "own"))
    drop = "drop from ToxiCN MM"
    return PaperPart(
        "Table 5",
        "Harmful memes found by detectors and models.",
        ("ToxiCN_MM", "Our Non-pun", drop, "Our Pun", drop),
        tuple(rows),
        "Model",
        notes=(
            "GPT-4o's printed drop of 0.112 is 0.122 by the table's own cells.",
            "The authors' 300 and 200 memes were not released.",
            "Yours: harmful_pun, harmful_nonpun and harmful_toxicn beside _Meta.json.",
            "A detector stands in the row of its file's name, such as detector/CLIP-MKE.",
            "Answers of another tool's model come in by memantics import-answers.",
        ),
    )


def _harm_cells(
    material: Material, run: ScoredRun | None, printed: Mapping[str, float], keys: Sequence[str]
) -> list[Cell]:
    fill = f"memantics run {material.name}/harmful --model detector/FILE --model MODEL"
    cells = []
    for key in keys:
        score: Score | None = find_score(run.figures.scores, key) if run else None
        paper = printed.get(key)
        if key.startswith("drop_") and printed:
            other = printed[f"recall_{key.removeprefix('drop_')}"]
            paper = round(printed["recall_toxicn"] - other, 3)
        sample = run is not None and material.source.kind == "starter"
        cells.append(
            replace(
                score_cell(score, 3, 1.0),
                paper=paper,
                compared=False,
                fill="" if sample else fill,
                reason="The sample holds no memes of ToxiCN MM." if sample else "",
            )
        )
    return cells


def table_7(material: Material) -> PaperPart:
    """Reading captions and their sound."""
    columns = tuple(Column(text, text, "substring", {}) for text in ("ocr", "pinyin"))
    rows = []
    for system, model in SYSTEMS.items():
        cells = []
        for column in columns:
            row = next(
                published_row
                for published_row in material.rows_of(column.task, "Table 7")
                if published_row.system == system
            )
            run = material.find_run(row, model)
            score = find_score(run.figures.scores, "substring") if run else None
            fill = f"memantics run {material.name}/{column.task} --model MODEL"
            cells.append(
                replace(
                    score_cell(score, 3, 1.0),
                    paper=row.figures["substring"],
                    compared=material.compares(run),
                    fill=fill,
                )
            )
        rows.append(PaperRow(system, tuple(cells)))
    rows += [replace(paper_row, section="") for paper_row in _own_rows(material, columns, "")]
    return PaperPart(
        "Table 7",
        "Image OCR and pinyin transfer: share of captions found in full.",
        ("Image OCR", "Pinyin Transfer"),
        tuple(rows),
        "Model",
        notes=(
            "The paper's “average substring match rate” is not defined; this is the strict one.",
        ),
    )


def table_8(material: Material) -> PaperPart:
    """Wrong homophones: how many, of what sort, and which."""
    runs = material.of_task("punchline")
    columns = (
        *("punchline accuracy", "pun word", "as printed", "same sound", "other sound", "nothing"),
    )
    sorts = (*("as printed", "another word of that sound", "a word of another sound", "nothing"),)
    fill = f"memantics run {material.name}/punchline --model MODEL"
    rows, texts = [], []
    for run, label in zip(runs, name_runs(runs), strict=True):
        scores = run.figures.scores
        cells = [
            score_cell(find_score(scores, key), 3, 1.0) for key in ("accuracy", "word_accuracy")
        ]
        wrong = [find_score(scores, f"share[wrong homophones={text}]") for text in sorts]
        none = "No homophone was wrong."
        cells += [
            replace(score_cell(score, 3, 1.0), reason="" if score else none) for score in wrong
        ]
        rows.append(PaperRow(label, tuple(cells), "own"))
        listed = [s.label for s in scores if s.by == "confused"]
        if listed:
            texts.append(PaperText(f"Wrong homophones of {label}", "\n".join(listed)))
    if not rows:
        rows = [PaperRow("GPT-4o", tuple(Cell(fill=fill) for _ in columns))]
    return PaperPart(
        "Table 8",
        "Wrong homophones. The paper shows three of GPT-4o's; here all are counted.",
        columns,
        tuple(rows),
        "Model",
        texts=tuple(texts),
        notes=("Shares of sorts are of the wrong ones.",),
    )
