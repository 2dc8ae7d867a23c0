"""``memantics detector train-neural`` and ``memantics detector tune`` (extra ``detector``)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from memantics.actions import train_networks
from memantics.actions.options import TaskOptions
from memantics.actions.tune_writer import WriterOptions, tune_intents
from memantics.cli.expose import AsJson, expose, spread
from memantics.cli.terminal import console, plain, print_json, show_table
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag


def _listen(as_json: bool) -> Callable[[str], None]:
    return (lambda _: None) if as_json else (lambda line: console().print(plain(line)))


@expose(
    train_networks.train_network,
    json=None,
    watch=lambda as_json: nullcontext({"say": _listen(as_json)}),
    first=("data", "preset", "out", "text", "image", "clip", "from_scratch", "captions"),
)
def train(made: train_networks.TrainedNetwork, as_json: AsJson = False) -> None:
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
        train_networks.Style | None,
        Flag(
            "For pun and harm: the image alone, with its caption (default), or also reasons before"
            " a verdict."
        ),
    ] = None,
    language: Annotated[
        train_networks.Language | None, Flag("Of the questions. Default: that of most captions.")
    ] = None,
    words: Annotated[
        Literal["ours", "official"],
        Flag("Ask about puns in our words, or in those of a PunMemeCN clone.", "--wording"),
    ] = "ours",
    data: Annotated[
        str | None,
        Flag(
            "For harm: as in train-neural. For pun and intent: starter or release; for intent also"
            " a benchmark that was published from intents, or the folder of MemeCap."
        ),
    ] = None,
    split: Annotated[str | None, Flag("For intent: the part of the data to learn from.")] = None,
    option: TaskOptions | None = None,
    external: Annotated[Path | None, Flag("Folder of memes of which none puns or harms.")] = None,
    out: Annotated[Path, Flag("The folder to write.")] = Path("tuned"),
    *,
    tuning: train_networks.Tuning,
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
        done = train_networks.tune_intents(
            train_networks.WriterOptions(model, tuning, out, data, split, option or {}), listen
        )
    else:
        _refuse(question, {"--split": split, "--set": option})
        chosen = train_networks.TuneOptions(
            model, tuning, out, question, style or "caption", language, data, external,
            words == "official",
        )  # fmt: skip
        done = train_networks.tune_model(chosen, listen)
    _show_tuned(done, as_json)


def _show_tuned(done: train_networks.TunedModel, as_json: bool) -> None:
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
