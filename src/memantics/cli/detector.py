"""``memantics detector …``: train, evaluate, use, compare, export and explain detectors.

Also ``memantics build pairs`` for minimal pairs. Training networks, LoRA tuning and studies need
the extra ``detector``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.text import Text

from memantics import construction, evaluation, moderation
from memantics.cli.expose import AsJson, expose, save_page, spread
from memantics.cli.terminal import console, plain, print_json, print_lines, say, show_table, tell
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag
from memantics.evaluation import TaskOptions
from memantics.moderation import Retrained, WrappedDetector, wrap_classifier


@expose(construction.build_pairs)
def build_pairs(done: construction.BuiltPairs) -> None:
    """Draw minimal pairs on memes: two captions that differ in one thing, layout kept, read back.

    Words come from a list that you name, mild ones by default. No model is asked.
    """
    counts = ", ".join(f"{kind} {count}" for kind, count in done.kinds.items())
    console().print(plain(f"{done.pairs} pairs: {counts}"))
    console().print(plain(f"read back: {done.read:.3f} of the letters; {done.clear:.0%} at 0.9"))
    for name, reason in list(done.failed.items())[:5]:
        console().print(plain(f"carries none: {name}: {reason}"))
    say(str(done.folder))


@expose(construction.check_pairs, save=save_page)
def check_pairs(done: construction.PairCheck, out: Path | None) -> None:
    """Say how consistent a detector or a run is on minimal pairs, kind by kind."""
    show_table(done.table())
    if done.not_scored:
        console().print(plain(f"left out: {done.not_scored} pairs; a side has no answer"))
    if done.failing:
        names = ", ".join(pair.id for pair in done.failing[:3])
        console().print(plain(f"{len(done.failing)} fail, such as {names}"))
    if out is not None:
        say(str(out))


def _listen(as_json: bool) -> Callable[[str], None]:
    return (lambda _: None) if as_json else (lambda line: console().print(plain(line)))


@expose(
    moderation.train_network,
    json=None,
    watch=lambda as_json: nullcontext({"say": _listen(as_json)}),
    first=("data", "preset", "out", "text", "image", "clip", "from_scratch", "captions"),
)
def train_network(made: moderation.TrainedNetwork, as_json: AsJson = False) -> None:
    """Train a network, every seed in one command; run again, it goes on where it stopped."""
    trained, left = made.trained, made.skips
    if not trained.first:
        return
    if as_json:
        print_json(made)
        return
    show_table(made.table())
    if left:
        first = f"first {left[0].row}: {left[0].reason}"
        console().print(plain(f"left out: {len(left)} memes, {first}"))
    folder = f"{trained.folder} (seed {trained.chosen})"
    console().print(plain(f"detector: {folder}, card: {made.card.name}"))


@spread
def tune(
    model: Annotated[Path, Argument("Folder of a local model that sees.")],
    question: Annotated[
        Literal["pun", "harm", "intent"],
        Flag("Whether a meme puns, whether it harms, or what its author does with it."),
    ] = "pun",
    style: Annotated[
        moderation.QuestionStyle | None,
        Flag(
            "For pun and harm: the image alone, with its caption (default), or also reasons before"
            " a verdict."
        ),
    ] = None,
    language: Annotated[
        moderation.PromptLanguage | None, Flag("Of the questions. Default: that of most captions.")
    ] = None,
    words: Annotated[
        Literal["ours", "official"],
        Flag("Ask about puns in our words, or in those of a PunMemeCN clone.", "--wording"),
    ] = "ours",
    data: Annotated[
        str | None,
        Flag(
            "For harm: as in train-neural. For pun and intent: sample or release; for intent also"
            " a benchmark that was published from intents, or the folder of MemeCap."
        ),
    ] = None,
    split: Annotated[str | None, Flag("For intent: the part of the data to learn from.")] = None,
    option: TaskOptions | None = None,
    external: Annotated[Path | None, Flag("Folder of memes of which none puns or harms.")] = None,
    out: Annotated[Path, Flag("The folder to write.")] = Path("tuned"),
    *,
    tuning: moderation.Tuning,
    as_json: AsJson = False,
) -> None:
    """Tune a local model by LoRA to tell puns or harm, or to write intents.

    Held-out memes judge it, before and after.
    """
    tuning = replace(tuning, alpha=2 * tuning.rank)
    listen = _listen(as_json)
    if question == "intent":
        words_given = "official" if words == "official" else None
        others = {"--style": style, "--language": language, "--external": external}
        _refuse("intent", {**others, "--wording": words_given})
        done = evaluation.tune_intents(
            evaluation.WriterOptions(model, tuning, out, data, split, option or {}), listen
        )
    else:
        _refuse(question, {"--split": split, "--set": option})
        chosen = moderation.TuneOptions(
            model, tuning, out, question, style or "caption", language, data, external,
            words == "official",
        )  # fmt: skip
        done = moderation.tune_model(chosen, listen)
    _show_tuned(done, as_json)


def _show_tuned(done: moderation.TunedModel, as_json: bool) -> None:
    tuned = done.tuned
    if as_json:
        print_json(tuned)
        return
    show_table(tuned.table())
    if done.left_out:
        console().print(plain(f"left out: {done.left_out} memes without an image"))
    adapter = f"adapter: {tuned.folder / 'adapter'}, trained on {tuned.trained_on:,} memes"
    console().print(plain(f"{adapter}; card: CARD.md"))


def _refuse(question: str, given: Mapping[str, object]) -> None:
    """Say that a flag does not belong to what is learnt."""
    for flag, value in given.items():
        if value is not None:
            hint = "memes are put as memeintent/intent puts them: use --set"
            raise InputError(
                f"{flag} has no meaning with --question {question}",
                hint=hint if question == "intent" else "leave it out",
            )


# ``memantics detector study``: variants × seeds × tasks in one command (extra ``detector``).


@expose(moderation.study, watch=lambda as_json: nullcontext({} if as_json else {"progress": tell}))
def study(done: moderation.Study, out: Path) -> None:
    """Train many detectors alike, test each once, and compare them: the paper's Table 5.

    A validation part of the training memes ends each training; the test part decides nothing.
    Run again, it goes on where it stopped.
    """
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    print_lines(f"note: {note}" for note in done.notes)
    where = f"{out / moderation.STUDY}; its tables: memantics paper NAME --detectors {out}"
    console().print(plain(where), soft_wrap=True)


app = typer.Typer(help="Detectors of harmful memes.", no_args_is_help=True)
app.command("train-neural")(train_network)
app.command("tune")(tune)
app.command("study")(study)
app.command("check")(check_pairs)
CurvePageFlag = Annotated[Path | None, Flag("Write a page with curve and error browser.")]


def watch_folds() -> nullcontext[dict[str, object]]:
    """Say which fold is done."""
    return nullcontext({"watch": lambda fold, total: tell(f"fold {fold} of {total}")})


@app.command("train")
@expose(
    moderation.train_detector,
    dump=lambda done: {"model": done.file, "card": done.card, "metrics": done.metrics},
    defaults={"split": "train"},
    first=("data", "preset", "out", "captions"),
)
def train(done: moderation.TrainedFile) -> None:
    """Train a detector, and write it with its model card."""
    print_lines(done.data.describe())
    show_evaluation(done.metrics, "Held out inside training")
    size, card = done.file.stat().st_size / 1e6, done.card.name.removesuffix(".md")
    console().print(plain(f"{done.file} ({size:.1f} MB), card: {card}.md, {card}.json"))
    if done.detector.sample:
        console().print(plain(moderation.SAMPLE_LIMIT, "dim"))


@app.command("wrap")
@expose(wrap_classifier)
def wrap(done: WrappedDetector) -> None:
    """Make a detector of a classifier from elsewhere (texts, images, or both), and write it."""
    if done.data is not None and done.metrics is not None:
        print_lines(done.data.describe())
        show_evaluation(done.metrics, "Held out of calibration")
    else:
        console().print(plain("not calibrated: add --data with labelled rows", "yellow"))
    shown = f"{done.file}: {done.architecture}, judges by {done.kind.replace('-', ' and ')}"
    console().print(plain(f"{shown}; card: {done.card.name}"))


@app.command("info")
@spread
def info(model: Annotated[Path, Argument("A detector file.")], as_json: AsJson = False) -> None:
    """Show a detector's model card: data, figures, errors by target, limits."""
    judge = moderation.Detector.load(model)
    if as_json:
        print_json(dict(judge.card))
    else:
        print_lines(judge.show_card().splitlines())


@app.command("set")
@expose(moderation.set_point)
def set_point(done: moderation.PointSet) -> None:
    """Store how a detector decides wherever nobody says otherwise: threshold, range for people."""
    print_lines(done.lines)
    span = (
        ""
        if done.point.review_range is None
        else "; for people: {:g} to {:g}".format(*done.point.review_range)
    )
    console().print(plain(f"{done.file}: harmful from {done.point.threshold:.4g}{span}"))


def _end_retraining(done: Retrained) -> None:
    if done.refused:
        tell(f"{done.file} was not written: {done.refused}; --force writes it all the same")
        raise typer.Exit(1)


@app.command("retrain")
@expose(moderation.retrain, watch=lambda: nullcontext({"watch": tell}), end=_end_retraining)
def retrain(done: Retrained) -> None:
    """Learn from people's verdicts beside the old labels, and replace a detector by a better one.

    Old and new are compared on a fixed part that is held out, and on the reviewed memes.
    """
    show_table(done.table())
    for name, lines in (("now right", done.better), ("now wrong", done.worse)):
        print_lines(f"{name}: {line}" for line in lines)
    print_lines(f"note: {note}" for note in done.notes)
    if not done.refused:
        console().print(plain(f"{done.file}: learnt from {done.learnt_from:,} memes"))


@app.command("use")
@spread
def use(
    model: Annotated[Path, Argument("A detector file or folder; 'sample' goes back.")],
) -> None:
    """Use a detector in analyze, screen and serve wherever none is named."""
    if str(model) == "sample" and not model.exists():
        moderation.forget_detector()
        console().print(plain("the sample detector of the sample data is in use"))
    else:
        console().print(plain(f"in use: {moderation.use_detector(model)}"))


def _save_page(done: moderation.Measured, page: CurvePageFlag = None) -> None:
    if page is not None:
        done.save(page)


@app.command("eval")
@expose(
    moderation.measure_detector,
    watch=watch_folds,
    save=_save_page,
    dump=lambda done: {
        "title": done.title,
        "notes": done.notes,
        "metrics": done.metrics,
        "robustness": done.robustness,
    },
)
def evaluate_detector(done: moderation.Measured, page: Path | None) -> None:
    """Measure a detector file on labelled memes, or a preset by cross-validation."""
    show_measured(done)
    if done.robustness is not None:
        if done.robustness.evasions:
            show_table(done.robustness.table())
        print_lines(done.robustness.lines)
        for note in done.robustness.notes:
            console().print(plain(f"note: {note}", "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


@app.command("predict")
@expose(moderation.predict_harm, dump=lambda done: done.rows)
def predict(done: moderation.Predicted, out: Path | None) -> None:
    """Judge texts, images, or memes from a file, with a trained detector."""
    print_lines(done.data.describe_skips())
    if done.blank:
        note = f"note: {done.blank:,} memes have no text: nothing speaks of them"
        console().print(plain(note, "dim"))
    for reason in sorted({prediction.not_scored for prediction in done.harms} - {""}):
        console().print(plain(f"not scored: {reason}", "yellow"))
    if out is not None:
        console().print(plain(f"{len(done.harms):,} predictions: {out}"))
    else:
        show_table(moderation.tabulate(done.data.examples, done.harms))
        if len(done.harms) > 40:
            console().print(plain(f"{len(done.harms):,} in all; --json or --out gives every one"))
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))


@app.command("compare")
@expose(moderation.compare_detectors, dump=lambda done: done.found)
def compare(done: moderation.Compared, first: Path, second: Path) -> None:
    """Compare two detectors on the same labelled memes, pair by pair."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_table(done.found.table(first.name, second.name))
    console().print(plain(done.found.summary))


@app.command("export")
@expose(moderation.export)
def export(done: moderation.ExportedDetector) -> None:
    """Write the single file that the other commands load without PyTorch."""
    console().print(plain(f"{done.file}: {done.bytes / 1e6:.1f} MB\nsha256 {done.sha256}"))


@app.command("explain")
@expose(moderation.explain_meme, dump=lambda done: done.found)
def explain(done: moderation.Explained, page: Path | None) -> None:
    """Show which characters, words and captions moved a decision."""
    _show_explanation(done.found)
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


def show_measured(done: moderation.Measured) -> None:
    """The figures of a detector, with what belongs beside them."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_evaluation(done.metrics, done.title)


def show_evaluation(
    found: moderation.DetectorEvaluation | moderation.LabelEvaluation, title: str
) -> None:
    """All tables of an evaluation."""
    show_table(found.table(title))
    if isinstance(found, moderation.DetectorEvaluation):
        show_table(found.threshold_table)
        if found.target_table is not None:
            show_table(found.target_table)
        error = f"calibration error {100 * found.calibration_error:.1f} points"
        console().print(plain(f"{found.count:,} memes; {error}"))


def _show_explanation(found: moderation.Explanation) -> None:
    out = console()
    verdict, score = found.lines
    out.print(Text(verdict, "bold"))
    out.print(plain(score))
    for share in found.fields:
        line = Text(f"{share.field.replace('_', ' ')} {share.total:+.2f}  ", "dim")
        top = max(map(abs, share.characters), default=0.0) or 1.0
        for letter, value in zip(plain(share.text).plain, share.characters, strict=False):
            line.append(letter, _colour(value / top))
        out.print(line)
    show_table(found.table())
    out.print(plain(f"+ speaks for harm, - against; {found.sense}", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"
