"""``memantics detector …``: train, evaluate, use, compare, export and explain detectors.

The module also contains ``memantics build pairs`` for minimal pairs. Training networks, LoRA tuning
and studies need the extra ``detector``.
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
from memantics.cli.expose import AsJson, PageLanguageFlag, expose, save_page, spread
from memantics.cli.terminal import console, plain, print_json, print_lines, say, show_table, tell
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag
from memantics.evaluation import TaskOptions
from memantics.moderation import Retrained, WrappedDetector, wrap_classifier


@expose(construction.build_pairs)
def build_pairs(done: construction.BuiltPairs) -> None:
    """Create minimal pairs: two captions on one meme that differ in one word group.

    The words come from a list that you name; by default it is a mild one. The new images are
    checked by OCR. No model is called.
    """
    counts = ", ".join(f"{kind} {count}" for kind, count in done.kinds.items())
    console().print(plain(f"{done.pairs} pairs: {counts}"))
    legible = f"OCR accuracy {done.read:.3f} of the characters; {done.clear:.0%} of pairs above 0.9"
    console().print(plain(legible))
    for name, reason in list(done.failed.items())[:5]:
        console().print(plain(f"no pair created: {name}: {reason}"))
    say(str(done.folder))


@expose(construction.check_pairs, save=save_page)
def check_pairs(done: construction.PairCheck, out: Path | None) -> None:
    """Test a detector or a run on minimal pairs, by kind of pair."""
    show_table(done.table())
    if done.not_scored:
        console().print(plain(f"skipped: {done.not_scored} pairs with an unanswered side"))
    if done.failing:
        names = ", ".join(pair.id for pair in done.failing[:3])
        console().print(plain(f"{len(done.failing)} fail, for example {names}"))
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
    """Train a neural detector with several seeds; running the command again resumes it."""
    trained, left = made.trained, made.skips
    if not trained.first:
        return
    if as_json:
        print_json(made)
        return
    show_table(made.table())
    if left:
        first = f"first {left[0].row}: {left[0].reason}"
        console().print(plain(f"skipped: {len(left)} memes, {first}"))
    folder = f"{trained.folder} (seed {trained.chosen})"
    console().print(plain(f"detector: {folder}, card: {made.card.name}"))


@spread
def tune(
    model: Annotated[Path, Argument("Folder of a local vision-language model.")],
    question: Annotated[
        Literal["pun", "harm", "intent"],
        Flag(
            "Task to learn: pun (is it a pun), harm (is it harmful), or intent (write the intent)."
        ),
    ] = "pun",
    style: Annotated[
        moderation.QuestionStyle | None,
        Flag(
            "Prompt for pun and harm: image only, image with caption (default), or also reasons"
            " before the verdict."
        ),
    ] = None,
    language: Annotated[
        moderation.PromptLanguage | None,
        Flag("Language of the questions. Default: that of most captions."),
    ] = None,
    words: Annotated[
        Literal["ours", "official"],
        Flag("Prompts for puns: built in, or those of a PunMemeCN clone.", "--wording"),
    ] = "ours",
    data: Annotated[
        str | None,
        Flag(
            "Training data. For harm: as in train-neural. For pun and intent: sample or release;"
            " for intent also a published benchmark of intents, or the folder of MemeCap."
        ),
    ] = None,
    split: Annotated[
        str | None, Flag("Part of the data to train on, for --question intent.")
    ] = None,
    option: TaskOptions | None = None,
    external: Annotated[
        Path | None, Flag("Folder of memes without puns or harm, for evaluation.")
    ] = None,
    out: Annotated[Path, Flag("Output folder.")] = Path("tuned"),
    *,
    tuning: moderation.Tuning,
    as_json: AsJson = False,
) -> None:
    """Fine-tune a local model with LoRA to detect puns or harm, or to write intents.

    It is evaluated on held-out memes, before and after.
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
    if done.skipped:
        console().print(plain(f"skipped: {done.skipped} memes without an image"))
    adapter = f"adapter: {tuned.folder / 'adapter'}, trained on {tuned.trained_on:,} memes"
    console().print(plain(f"{adapter}; card: CARD.md"))


def _refuse(question: str, given: Mapping[str, object]) -> None:
    """Raise an error for a flag that does not apply to the chosen task (pun, harm or intent)."""
    for flag, value in given.items():
        if value is not None:
            hint = "the prompt is that of memeintent/intent: use --set"
            raise InputError(
                f"{flag} cannot be used with --question {question}",
                hint=hint if question == "intent" else "leave it out",
            )


# ``memantics detector study`` trains variants × seeds × tasks in one command (extra ``detector``).


@expose(moderation.study, watch=lambda as_json: nullcontext({} if as_json else {"progress": tell}))
def study(done: moderation.Study, out: Path) -> None:
    """Train several detectors with the same settings, test each once, and compare them.

    Training stops early on a validation part of the training memes; the test part is used once.
    Running the command again resumes it.
    """
    show_table(done.table())
    if done.contrasts:
        show_table(done.contrast_table())
    print_lines(f"note: {note}" for note in done.notes)
    where = f"{out / moderation.STUDY}; its tables: memantics paper NAME --detectors {out}"
    console().print(plain(where), soft_wrap=True)


app = typer.Typer(help="Train, evaluate and use detectors of harmful memes.", no_args_is_help=True)
app.command("train-neural")(train_network)
app.command("tune")(tune)
app.command("study")(study)
app.command("check")(check_pairs)
CurvePageFlag = Annotated[Path | None, Flag("Write an HTML page with curves and an error browser.")]


def watch_folds() -> nullcontext[dict[str, object]]:
    """Print each finished cross-validation fold."""
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
    show_evaluation(done.metrics, "On memes held out in training")
    print_lines(done.describe_identity())
    size, card = done.file.stat().st_size / 1e6, done.card.name.removesuffix(".md")
    console().print(plain(f"{done.file} ({size:.1f} MB), card: {card}.md, {card}.json"))
    if done.detector.sample:
        console().print(plain(moderation.SAMPLE_LIMIT, "dim"))


@app.command("wrap")
@expose(wrap_classifier)
def wrap(done: WrappedDetector) -> None:
    """Convert an existing classifier of texts, images or both into a detector."""
    if done.data is not None and done.metrics is not None:
        print_lines(done.data.describe())
        show_evaluation(done.metrics, "On rows held out from calibration")
    else:
        console().print(plain("not calibrated: add --data with labelled rows", "yellow"))
    shown = f"{done.file}: {done.architecture}, input: {done.kind.replace('-', ' and ')}"
    console().print(plain(f"{shown}; card: {done.card.name}"))


@app.command("info")
@spread
def info(model: Annotated[Path, Argument("Detector file.")], as_json: AsJson = False) -> None:
    """Show a detector's model card: data, metrics, errors by target, limits."""
    judge = moderation.Detector.load(model)
    if as_json:
        print_json(dict(judge.card))
    else:
        print_lines(judge.show_card().splitlines())


@app.command("set")
@expose(moderation.set_point)
def set_point(done: moderation.PointSet) -> None:
    """Set the default threshold and review range of a detector."""
    print_lines(done.lines)
    band = done.point.review_band
    span = "" if band is None else "; human review: {:.4g} to {:.4g}".format(*band)
    console().print(plain(f"{done.file}: harmful from {done.point.threshold:.4g}{span}"))


def _end_retraining(done: Retrained) -> None:
    if done.refused:
        tell(f"{done.file} was not written: {done.refused}; use --force to write it anyway")
        raise typer.Exit(1)


@app.command("retrain")
@expose(moderation.retrain, watch=lambda: nullcontext({"watch": tell}), end=_end_retraining)
def retrain(done: Retrained) -> None:
    """Retrain a detector with new annotations; replace it only if the new one passes a test.

    The test compares both detectors on held-out memes and on the reviewed memes.
    """
    show_table(done.table())
    for name, lines in (("now correct", done.better), ("now wrong", done.worse)):
        print_lines(f"{name}: {line}" for line in lines)
    print_lines(f"note: {note}" for note in done.notes)
    for warning in done.warnings:
        console().print(plain(f"warning: {warning}", "yellow"))
    if not done.refused:
        counts = f"{done.learnt_from:,} memes, {done.reviewed:,} of them reviewed"
        console().print(plain(f"{done.file}: trained with {counts}"))


@app.command("use")
@spread
def use(
    model: Annotated[Path, Argument("Detector file or folder; 'sample' restores the default.")],
) -> None:
    """Set the default detector of analyze, screen and serve."""
    if str(model) == "sample" and not model.exists():
        moderation.forget_detector()
        console().print(plain("the sample detector is in use"))
    else:
        console().print(plain(f"default: {moderation.use_detector(model)}"))


def _save_page(
    done: moderation.Measured, page: CurvePageFlag = None, language: PageLanguageFlag = "en"
) -> None:
    if page is not None:
        done.save(page, language)


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
    """Evaluate a detector file on labelled memes, or a preset by cross-validation."""
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
    """Classify texts, images, or memes from a file with a trained detector."""
    print_lines(done.data.describe_skips())
    if done.blank:
        note = f"note: {done.blank:,} memes have no text and were not scored"
        console().print(plain(note, "dim"))
    for reason in sorted({prediction.not_scored for prediction in done.harms} - {""}):
        console().print(plain(f"not scored: {reason}", "yellow"))
    if out is not None:
        console().print(plain(f"{len(done.harms):,} predictions: {out}"))
    else:
        show_table(moderation.tabulate(done.data.examples, done.harms))
        if len(done.harms) > 40:
            console().print(
                plain(f"{len(done.harms):,} in total; use --json or --out for all of them")
            )
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))


@app.command("compare")
@expose(moderation.compare_detectors, dump=lambda done: done.found)
def compare(done: moderation.Compared, first: Path, second: Path) -> None:
    """Compare two detectors on the same labelled memes with paired tests."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_table(done.found.table(first.name, second.name))
    console().print(plain(done.found.summary))


@app.command("export")
@expose(moderation.export)
def export(done: moderation.ExportedDetector) -> None:
    """Export a neural detector to one file that runs without PyTorch."""
    console().print(plain(f"{done.file}: {done.bytes / 1e6:.1f} MB\nsha256 {done.sha256}"))


@app.command("explain")
@expose(moderation.explain_meme, dump=lambda done: done.found)
def explain(done: moderation.Explained, page: Path | None) -> None:
    """Show the characters, words and captions that contributed most to a decision."""
    _show_explanation(done.found)
    if done.detector.sample:
        console().print(plain(done.detector.note, "dim"))
    if page is not None:
        console().print(plain(f"page: {page}"))


def show_measured(done: moderation.Measured) -> None:
    """Print the metrics of a detector with their notes."""
    print_lines(done.data.describe())
    for note in done.notes:
        console().print(plain(f"note: {note}", "yellow"))
    show_evaluation(done.metrics, done.title)


def show_evaluation(
    found: moderation.DetectorEvaluation | moderation.LabelEvaluation, title: str
) -> None:
    """Print all tables of a detector evaluation."""
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
    out.print(plain(f"+ supports harm, - opposes it; {found.sense}", "dim"))


def _colour(share: float) -> str:
    if abs(share) < 0.2:
        return ""
    strong = "bold " if abs(share) > 0.6 else ""
    return f"{strong}{'red' if share > 0 else 'green'}"
