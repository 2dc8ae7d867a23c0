"""Commands on single memes: analyze, pun, reappraise, edit, demo, samples and build reappraisal.

``reappraise --interactive`` shows each stage in the terminal to accept, edit as JSON or skip.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from io import StringIO
from pathlib import Path
from typing import Annotated, Any

import orjson
import typer
from pydantic import BaseModel, ValidationError
from rich.padding import Padding
from rich.panel import Panel
from rich.table import Table as Grid

from memantics import understanding, workbench
from memantics.cli.expose import PageFlag, PageLanguageFlag, expose, spread
from memantics.cli.progress import tell_tokens, watch
from memantics.cli.terminal import (
    console,
    plain,
    print_json,
    print_lines,
    read_input,
    say,
    show_table,
    tell,
)
from memantics.core.data import dump_json
from memantics.core.errors import InputError, first_fault
from memantics.core.files import read_regular
from memantics.core.parameters import Argument, Flag, TokenPrices
from memantics.core.result import Table
from memantics.core.samples import copy as copy_samples
from memantics.understanding import (
    Reappraisal,
    ReappraisalDrafts,
    ReappraisalStage,
    Shape,
)
from memantics.workbench import Analyses, Analysis, Tour, describe


def _save(made: Analyses, out: PageFlag = None, page_language: PageLanguageFlag = "en") -> None:
    if out is not None and made:
        made.save(out, page_language)


def _end_analysis(made: Analyses) -> None:
    for error in made.refused:
        tell(f"error: {error}")
    if made.refused:
        raise typer.Exit(1 if made else 2)
    if any(one.statuses.get("failed") for one in made):
        raise typer.Exit(1)


@expose(
    workbench.analyze,
    watch=watch("analyze"),
    dump=lambda made: [one.to_dict() for one in made],
    save=_save,
    end=_end_analysis,
)
def analyze(made: Analyses, out: Path | None) -> None:
    """Analyse memes: text, image, meaning, intent, puns and harm.

    Without --model only OCR, homophone readings and the local detector run.
    """
    for one in made:
        show(one)
    tell_tokens(made.tokens, len(made))
    if out is not None and made:
        console().print(plain(f"page: {out}"))


def show(found: Analysis) -> None:
    """Print an analysis as a card that fits a terminal."""
    grid = Grid.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for title, line, tone in describe(found):
        grid.add_row(title, plain(line, tone))
    console().print(Panel(grid, title=plain(found.meme.image.name), title_align="left"))


CaptionsArgument = Annotated[
    list[str] | None, Argument("Captions; - reads them from standard input, one per line.")
]
Description = Annotated[
    str | None, Flag("Description of the image, as evidence for the literal reading.")
]
SoundModel = Annotated[
    understanding.ModelName,
    Flag("Chinese language model; auto: the best installed one.", "--lm"),
]
Threshold = Annotated[float, Flag("Minimum confidence of the intended reading.", min=0.0, max=1.0)]
EvaluateFlag = Annotated[
    Path | None,
    Flag("Evaluate on a PunMemeCN release instead of reading captions.", "--evaluate"),
]
Groups = Annotated[
    str,
    Flag("Groups for --evaluate: train, test, or numbers such as 1-100,205. Default: all."),
]


@spread
def read_puns(
    captions: CaptionsArgument = None,
    description: Description = None,
    language: Annotated[
        understanding.CaptionLanguage, Flag("Language code of the captions. Default: detected.")
    ] = "auto",
    model: SoundModel = "auto",
    limit: Annotated[int, Flag("Maximum number of readings per caption.", min=1, max=50)] = 5,
    threshold: Threshold = 0.5,
    measure: EvaluateFlag = None,
    groups: Groups = "",
    as_json: Annotated[bool, Flag("Print JSON instead of text.", "--json")] = False,
) -> None:
    """Find homophone readings of captions and detect puns."""
    if measure is not None:
        if captions:
            raise InputError("captions and --evaluate cannot be combined", hint="give one of them")
        console().print(
            plain(
                understanding.format_metrics(understanding.score_readings(measure, model, groups))
            )
        )
        return
    if groups:
        raise InputError("--groups needs --evaluate", hint="add --evaluate DIR")
    given = captions or []
    lines = [
        line for text in given for line in (StringIO(read_input()) if text == "-" else (text,))
    ]
    if not lines:
        raise InputError("no caption given", hint='for example memantics pun "蒸多鱼"')
    settings = understanding.Settings(
        language=language, model=model, limit=limit, threshold=threshold
    )
    found = understanding.read_captions(
        [line.rstrip("\n") for line in lines], description, settings
    )
    if as_json:
        print_json(found)
        return
    for readings in found:
        _show_puns(readings)


def _show_puns(readings: understanding.HomophoneReadings) -> None:
    """Print the pun verdict and its evidence; other readings only for a pun."""
    head, *rest = understanding.explain(readings, alternatives=0)
    out = console()
    out.print(plain(head, "bold" if readings.intended else ""))
    for line in rest:
        if readings.intended or not line.startswith("span: "):
            out.print(Padding(plain(line), (0, 0, 0, 2)))
    if readings.intended and len(readings.readings) > 1:
        others = ", ".join(reading.text for reading in readings.readings[1:])
        out.print(Padding(plain(f"other readings: {others}", "dim"), (0, 0, 0, 2)))


def _end_edit(done: understanding.Edited) -> None:
    for meme, reason in list(done.failed.items())[:5]:
        tell(f"{meme}: {reason}"[:300])
    if done.failed:
        raise typer.Exit(1)


@expose(
    understanding.edit,
    watch=watch("edit"),
    end=_end_edit,
    defaults={"concurrency": 8},
)
def edit_memes(done: understanding.Edited) -> None:
    """Edit every meme of MER-Bench's index with one image editor, for its judge."""
    text = f"{done.made} made, {done.kept} there before, {len(done.failed)} failed: {done.folder}"
    console().print(plain(text), soft_wrap=True)


app = typer.Typer(help="Copy the sample memes that ship with the package.", no_args_is_help=True)


@expose(workbench.demo, watch=lambda: nullcontext({"progress": lambda step: tell(f"  {step} …")}))
def show_demo(made: Tour) -> None:
    """Run all parts of Memantics on the sample data, offline, and write one page."""
    say("")
    for line in made.highlights:
        say(f"• {line}")
    say("")
    say(f"Open {made.page} in a browser; {made.report} is an example of a model report.")


@app.command("copy")
@expose(copy_samples, json=None)
def copy_memes(folder: Path) -> None:
    """Copy the sample memes and their tables to a folder, to follow the guides."""
    say(f"{folder}: memes/, memes.csv, memes.jsonl")


def edit_as_json(value: Shape) -> tuple[Shape, str]:
    """Let the user edit a value as JSON; return the result, and an error if it is invalid."""
    try:
        text = _open_editor(dump_json(value.model_dump(mode="json")))
        return type(value).model_validate(orjson.loads(text), strict=True), ""
    except orjson.JSONDecodeError as error:
        return value, f"not valid JSON: {error}; the edit is dropped"
    except ValidationError as error:
        return value, f"{first_fault(error)}; the edit is dropped"
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        return value, f"the editor did not work: {error}; set EDITOR to one that does"


def _open_editor(text: str) -> bytes:
    """Open a text in the user's editor ($VISUAL, else $EDITOR, else vi) and return the result."""
    command = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "stage.json"
        path.write_text(text, encoding="utf-8")
        subprocess.run([*shlex.split(command), str(path)], check=True)  # noqa: S603 - the user's own
        return read_regular(path)


_TITLES = {"feeling": "what it feels like", "plan": "the plan", "reading": "", "picture": ""}


def review_in_terminal(
    stage: ReappraisalStage, meme: str, value: Shape, check: Callable[[Shape], list[str]]
) -> Shape | None:
    """Show a stage of the rewriting and ask for a decision; explain an invalid edit."""
    current = value
    while True:
        _show_draft(stage, meme, current)
        faults = check(current)
        for fault in faults:
            console().print(plain(f"  not allowed: {fault}", "red"))
        choices = "[e]dit, [s]kip" if faults else "[a]ccept, [e]dit, [s]kip"
        answer = typer.prompt(choices, default="e" if faults else "a", err=True).strip().lower()
        if answer.startswith("s"):
            return None
        if answer.startswith("a") and not faults:
            return current
        if answer.startswith("e"):
            current, complaint = edit_as_json(current)
            if complaint:
                _complain(complaint)


def _show_draft(stage: ReappraisalStage, meme: str, value: BaseModel) -> None:
    out = console()
    out.print(plain(f"{meme}: {_TITLES[stage]}", "bold"))
    out.print(plain(dump_json(value.model_dump(mode="json"))))


def _complain(what: str) -> None:
    console().print(plain(f"  {what}", "red"))


Interactive = Annotated[
    bool, Flag("Review each stage in the terminal: accept, edit or skip.", "--interactive -i")
]


@contextmanager
def _watch(prices: TokenPrices, interactive: Interactive = False) -> Iterator[Mapping[str, Any]]:
    if interactive and not sys.stdin.isatty():
        raise InputError(
            "--interactive needs a terminal", hint="without one, edit plan.json in --out"
        )
    review = {"review": review_in_terminal} if interactive else {}
    with watch("reappraise", tokens=True)(prices) as watchers:
        yield {**watchers, **review}


def _end_reappraisal(results: Sequence[Reappraisal]) -> None:
    failed = [result for result in results if result.status == "failed"]
    if failed and understanding.none_read(results):
        for result in failed:
            tell(f"error: {result.reason}")
        raise typer.Exit(2)
    if failed or any(result.status == "flawed" for result in results):
        raise typer.Exit(1)


@expose(
    understanding.reappraise,
    watch=_watch,
    dump=lambda results: [result.to_dict() for result in results],
    end=_end_reappraisal,
    defaults={"concurrency": 8},
    first=("target", "model", "editor", "out", "interactive", "versions", "choose"),
)
def reappraise(results: Sequence[Reappraisal], versions: int) -> None:
    """Rewrite negative memes: new captions in place, panels and layout kept."""
    out, shown = console(), understanding.tabulate_results(results)
    if shown.rows:
        show_table(shown)
        print_lines(understanding.tell_sources(results))
    for result in results:
        if not result.drawn and not understanding.none_read(results):
            out.print(plain(f"{result.meme}: {result.stage} {result.status}: {result.reason}"))
    print_lines(understanding.tell_flaws(results))
    for result in results:
        print_lines(understanding.tell_versions(result, versions))
    drawn = [result for result in results if result.drawn]
    if drawn:
        notes: dict[str, list[str]] = {}
        for one in drawn:
            for note in one.checks.notes if one.checks else ():
                notes.setdefault(note, []).append(one.meme)
        for note, memes in notes.items():
            of_all = len(memes) == len(drawn)
            out.print(plain(note if of_all else f"{', '.join(memes)}: {note}", "dim"))
        count = Counter(result.status for result in results)
        left = "".join(f", {count[name]} {name}" for name in ("flawed", "declined") if count[name])
        place = drawn[0].folder.parent
        out.print(plain(f"{count['done']} of {len(results)} done{left}: {place}."))


def _count(made: ReappraisalDrafts) -> dict[str, object]:
    facts = {"folder": str(made.folder), "drafts": len(made.drafts), "editors": made.counts}
    return facts | {"skipped": dict(made.skipped)}


def _end_drafts(made: ReappraisalDrafts) -> None:
    if any(count["failed"] or count["flawed"] for count in made.counts.values()):
        raise typer.Exit(1)


@expose(
    understanding.draft_reappraisals,
    watch=watch("reappraise", tokens=True),
    dump=_count,
    end=_end_drafts,
    defaults={"concurrency": 8},
    first=("model",),
)
def build_reappraisal(made: ReappraisalDrafts) -> None:
    """Rewrite every meme of a folder with one or more image editors, for human review."""
    counts = made.counts
    columns = ("done", "flawed", "declined", "failed")
    rows = tuple((name, *(str(group[each]) for each in columns)) for name, group in counts.items())
    show_table(Table(("editor", *(f">{each}" for each in columns)), rows))
    out = console()
    for name, results in made.made.items():
        for result in [r for r in results if r.status in ("failed", "flawed", "declined")][:5]:
            out.print(plain(f"{name} {result.meme}: {result.status}: {result.reason}"[:300]))
    for reason, count in Counter(made.skipped.values()).items():
        out.print(plain(f"skipped, {reason}: {count}"))
    out.print(plain(f"{len(made.drafts)} drafts; queue for review: {made.queue}"))
