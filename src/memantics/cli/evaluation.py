"""Commands around runs: run, score, judge, human-eval, paper, prompts, perturb, import, export."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Annotated

import typer

from memantics import evaluation
from memantics.cli.expose import AsJson, PageLanguageFlag, expose, spread, spread_with
from memantics.cli.progress import SuiteView, wait_for
from memantics.cli.terminal import (
    console,
    plain,
    print_data,
    print_json,
    print_lines,
    show_table,
    tell,
)
from memantics.core.errors import InputError, Unavailable
from memantics.core.parameters import Argument, Flag, InvalidFlag, Rewordings, TokenPrices
from memantics.core.records import Score
from memantics.evaluation import (
    DEFAULT_PERTURBATIONS,
    AskedModels,
    EvaluationPlan,
    Folders,
    HumanExport,
    MetricNames,
    PaperForm,
    ReproducedPaper,
    Scope,
    ScoringOptions,
    Variation,
    load_runs,
    perturb_evaluation,
    read_settings,
)
from memantics.evaluation import score as score_run
from memantics.evaluation import table as tabulate
from memantics.models.client import CallSettings

# If there are more folders than this number, only their parent folder is named.
_FEW = 8


@spread_with(first=("models", "captioner"))
def run(
    wanted: evaluation.EvaluationPlan,
    dry_run: Annotated[
        bool, Flag("Estimate the number of calls and tokens; send nothing.")
    ] = False,
    watch: Annotated[
        bool, Flag("Serve a page with the runs in --out while they are running.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Evaluate models on benchmark tasks and score the answers.

    Running the same command again resumes it.
    """
    calls = wanted.calls
    jobs, skipped = evaluation.plan_evaluation(wanted)
    for task, error in skipped.items():
        tell(f"skipped {task}: {error}")
    if dry_run:
        _show_estimates(evaluation.estimate_plan(jobs, calls), calls.prices, as_json=as_json)
        return
    page = _serve_page(wanted.out) if watch else nullcontext()
    with page, SuiteView(jobs, calls.prices) as view:
        ends = wait_for(evaluation.conduct(jobs, calls, view))
    _show_ends(ends, skipped, as_json=as_json)
    if (took := view.conclude(ends)) and not as_json:
        console().print(plain(took, "dim"), soft_wrap=True)
    _finish(ends)


@contextmanager
def _serve_page(out: Path) -> Iterator[None]:
    """Serve the web page of a folder's runs in another process until the block ends."""
    from memantics.serve import require_extra

    require_extra()
    out.mkdir(parents=True, exist_ok=True)
    again = f"memantics serve --runs {out}"
    with tempfile.TemporaryDirectory(prefix="memantics-watch-") as state:
        words = ("serve", "--runs", str(out), "--port", "0", "--state", state)
        command = [sys.executable, "-m", "memantics", *words]
        with subprocess.Popen(  # noqa: S603 - our own command
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        ) as page:
            try:
                said = page.stdout.readline() if page.stdout else ""
                if not said:
                    raise InputError(
                        "the page could not be served", hint=f"run '{again}' to see the reason"
                    )
                address = said.removeprefix("Serving on ").strip()
                tell(f"progress: {address}/browse/runs (until the run ends; later: {again})")
                yield
            finally:
                page.terminate()


@spread
def score(
    folders: Folders,
    invalid: InvalidFlag = None,
    options: ScoringOptions | None = None,
    metrics: MetricNames = None,
    by: Annotated[
        str | None,
        Flag(
            "Also score subsets by a tag of the items, such as dimension, or by gold, status or"
            " images; with the majority baseline of each."
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Score the answers of finished runs again; no model is called."""
    runs = [
        score_run(folder, invalid=invalid, options=options, metrics=metrics) for folder in folders
    ]
    parts = (
        []
        if by is None
        else [evaluation.score_subsets(run.folder, by, invalid=invalid) for run in runs]
    )
    if as_json:
        shown = [{"folder": run.folder, "scores": run.results} for run in runs]
        for one, part in zip(shown, parts, strict=False):
            one["subsets"] = part.rows
        print_json(shown)
        return
    console().print(tabulate(load_runs(folders)))
    for part in parts:
        show_table(part.table())


def _show_ends(
    ends: Sequence[evaluation.RunEnd], skipped: Mapping[str, InputError], *, as_json: bool
) -> None:
    """Print the scores, the run folders, and the missing answers."""
    if as_json:
        missing = [{"task": task, "skipped": str(error)} for task, error in skipped.items()]
        print_json([*map(evaluation.dump_end, ends), *missing])
        return
    out = console()
    scored = [end for end in ends if end.ended is not None and end.ended.scores is not None]
    shown = [end.job.folder for end in scored if end.job.asked]
    if shown:
        out.print(tabulate(load_runs(shown)))
    if len(scored) > _FEW:
        out.print(plain(f"{len(scored)} runs in {scored[0].job.folder.parent}"), soft_wrap=True)
    for end in scored if len(scored) <= _FEW else ():
        note = "" if end.job.asked else "  (needed by others)"
        out.print(plain(f"{end.job.folder}{note}"), soft_wrap=True)
    for task, error in skipped.items():
        out.print(plain(f"skipped: {task}: {error.what}", "yellow"))


def _finish(ends: Sequence[evaluation.RunEnd]) -> None:
    """Print each problem of the runs once and end with the matching exit code."""
    for line in evaluation.list_errors(ends):
        tell(line)
    for end in ends:
        if end.fault is not None:
            raise end.fault
    for line in evaluation.list_failures(ends):
        tell(line)
    errors = [end.error for end in ends if end.error is not None]
    if any(isinstance(error, InputError | Unavailable) for error in errors):
        raise typer.Exit(2)
    if errors or evaluation.count_unanswered(ends):
        raise typer.Exit(1)


def _show_estimates(
    found: Sequence[evaluation.Estimate], prices: TokenPrices, *, as_json: bool
) -> None:
    if as_json:
        print_json([estimate.dump(prices) for estimate in found])
        return
    for shown in evaluation.tabulate_estimates(found, prices):
        show_table(shown)
    for note in evaluation.note_estimates(found, prices):
        console().print(plain(note, "dim"))


human_eval_app = typer.Typer(
    help="Let people rate answers: export answers without model names, and score the ratings.",
    no_args_is_help=True,
)


@human_eval_app.command("export")
@expose(evaluation.export_human_eval, json=None)
def export(done: HumanExport) -> None:
    """Export answers for human evaluation: a queue without model names, and a key with them."""
    written = f"{done.rows} ratings of {done.memes} memes: {done.queue}"
    console().print(plain(f"{written}; do not show {done.key} to the raters"))


@human_eval_app.command("score")
@expose(evaluation.score_human_eval)
def score_ratings(done: evaluation.HumanScores) -> None:
    """Score human ratings: means by setting, tests, agreement, correlation with metrics."""
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    show_table(done.agreement_table())
    if done.correlations:
        show_table(done.metric_table())
    if done.corrected:
        show_table(done.corrected_table())


@human_eval_app.command("preferences")
@expose(evaluation.score_preferences)
def preferences(done: list[Score]) -> None:
    """Measure how often judges agree with people's choices between versions of a meme."""
    show_table(evaluation.tabulate_agreement(done))


@expose(evaluation.paper, json=None)
def show_paper(
    sheet: ReproducedPaper,
    name: str,
    out: Annotated[
        Path | None,
        Flag("File to write. Default: NAME-paper.html; other formats are printed."),
    ] = None,
    form: Annotated[PaperForm, Flag("Output format.", "--format")] = "html",
    language: PageLanguageFlag = "en",
) -> None:
    """Reproduce a paper's tables and figures from your data, runs, annotations and detectors."""
    if form != "html" and out is None:
        print_data(sheet.render(form, language))
        return
    path = sheet.save(out or f"{name}-paper.html", form if form != "html" else "", language)
    counts = ", ".join(f"{n} {status}" for status, n in sheet.counts.items() if n)
    console().print(plain(f"cells: {counts or 'none'}"))
    console().print(plain(f"paper: {path}"), soft_wrap=True)


prompts_app = typer.Typer(
    help="Show the requests of a task, and copy its prompt files.", no_args_is_help=True
)


@prompts_app.command("show")
@expose(evaluation.show_prompt, hide=("invalid",))
def show(shown: evaluation.ShownPrompt) -> None:
    """Print the exact request for an item; no model is called."""
    tell(shown.head)
    print_data(shown.text + "\n")


@prompts_app.command("copy")
@expose(evaluation.copy_prompts, hide=("invalid", "limit", "sample", "seed"))
def copy(done: evaluation.CopiedPrompts, task: str, folder: Path) -> None:
    """Copy the prompt files of a task, to edit them and run with --prompts."""
    print_lines([str(done.folder / f"{name}.md") for name in done.copied])
    if done.kept:
        tell(f"{len(done.kept)} files already exist and were kept: {', '.join(done.kept)}")
    print_lines([f"next: memantics run {task} --prompts {folder} --model MODEL"])


@spread
def perturb(
    name: Annotated[str, Argument("NAME/TASK.")],
    model: AskedModels,
    perturbations: Annotated[
        Sequence[str],
        Flag(
            "Perturbation; repeatable: image=swapped|blank, "
            "caption=removed|reworded|shuffled, meme=removed, options=permuted, "
            "contamination=caption|id|template|canary (has the model memorised it?). "
            "Default: image=swapped and blank, caption=removed, options=permuted.",
            "--perturb",
            metavar="WHAT=HOW",
        ),
    ] = (),
    rewordings: Rewordings = None,
    scope: Scope = Scope(),  # noqa: B008 - frozen
    option: Annotated[
        list[str] | None,
        Flag("Task option NAME=VALUE; repeatable.", "--set", metavar="OPTION=VALUE"),
    ] = None,
    out: Annotated[Path, Flag("Folder for the run directories. Default: runs.")] = Path("runs"),
    *,
    calls: CallSettings,
    as_json: AsJson = False,
) -> None:
    """Test what answers depend on: change image, caption or options, and compare the scores.

    Differences are paired by item and clustered by meme. contamination=… tests whether a model has
    memorised the data.
    """
    wanted = EvaluationPlan(
        [name],
        model,
        scope,
        read_settings("--set", option),
        out,
        calls=calls,
        variation=Variation(rewordings=rewordings),
    )
    found = wait_for(perturb_evaluation(wanted, perturbations or DEFAULT_PERTURBATIONS))
    if as_json:
        print_json(found.to_dict())
    else:
        show_table(found.table())


def _end(done: evaluation.Imported, file: Path) -> None:
    if done.without_answer:
        asked = f"{done.without_answer} of {done.answers + done.without_answer} items"
        tell(f"{asked} are missing in {file.name}: metrics cover the others")
    if done.skipped:
        tell(f"{len(done.skipped)} of {done.rows} rows were skipped: {done.listed}")
    if done.skipped or any(run.counts["failed"] for run in (done.run, *done.repeats)):
        raise typer.Exit(1)


@expose(evaluation.import_answers, end=_end, first=("task", "model", "format", "columns", "values"))
def bring_in(done: evaluation.Imported) -> None:
    """Import answers of another tool as a run: matched to items, scored, marked as imported.

    Rows that match no item, or several, are listed in the run's skipped.jsonl.
    """
    console().print(tabulate([done.run, *done.repeats]))
    for run in (done.run, *done.repeats):
        console().print(plain(str(run.folder)), soft_wrap=True)


@expose(evaluation.export_task, hide=("invalid",), first=("format", "out", "model", "params"))
def send_out(done: evaluation.Exported) -> None:
    """Export a task for another tool: OpenAI batch, lmms-eval, lm-eval, VLMEvalKit."""
    console().print(plain(f"{done.items} items of {done.task}"))
    for path in done.files:
        console().print(plain(str(path)), soft_wrap=True)
