"""How runs depart from a task's own way of asking, and what that asks of a server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal, get_args

from memantics.actions.asking import Asking, make_asking
from memantics.actions.options import (
    AskedModels,
    Data,
    Invalid,
    Limit,
    Rewordings,
    Sample,
    Seed,
    Split,
)
from memantics.core.errors import InputError, UnknownName
from memantics.core.parameters import Argument, Flag, MadeBy
from memantics.registry import ModelSettings
from memantics.run.evaluate import Job
from memantics.run.grid import Setting, read_settings

ScoreBy = Literal["reply", "logprobs"]
# The most that hosted servers give at a token.
_TOP = 20


@dataclass(frozen=True, slots=True)
class Variation:
    """How runs depart from a task's own way: prompts, demonstrations, repeats, what is scored.

    ``prompts`` is a folder of prompts in the place of ours, ``shots`` a file of demonstrations.
    ``score`` is ``reply``, or ``logprobs`` to take the option that the server's log-probabilities
    make likeliest. ``max_tokens`` bounds the answer, ``thinking_tokens`` the thinking before it.
    """

    prompts: Annotated[
        Path | None, Flag("Prompts in the place of ours: files of the same names.", metavar="DIR")
    ] = None
    shots: Annotated[
        Path | None,
        Flag("Demonstrations with images: JSON lines, shown before.", metavar="FILE"),
    ] = None
    repeat: Annotated[int, Flag("Ask everything N times, by seed.", min=1, max=100)] = 1
    score: Annotated[ScoreBy, Flag("Read the reply, or take the option that is likeliest.")] = (
        "reply"
    )
    max_tokens: Annotated[
        int | None, Flag("Tokens of an answer, without the thinking before it.", min=1)
    ] = None
    thinking_tokens: Annotated[
        int | None, Flag("Tokens for thinking, on top of the answer's.", min=1)
    ] = None

    @classmethod
    def read(
        cls,
        prompts: str | Path | None,
        shots: str | Path | None,
        repeat: int,
        score: ScoreBy,
        max_tokens: int | None,
        thinking_tokens: int | None,
    ) -> Variation:
        """From what a caller gives; impossible values are refused."""
        if score not in get_args(ScoreBy):
            raise UnknownName("score", score, get_args(ScoreBy))
        for name, value in {
            "repeat": repeat,
            "max_tokens": max_tokens,
            "thinking_tokens": thinking_tokens,
        }.items():
            if value is not None and value < 1:
                raise InputError(f"{name}={value} is not possible", hint="give 1 or more")
        first, second = (None if place is None else Path(place) for place in (prompts, shots))
        return cls(first, second, repeat, score, max_tokens, thinking_tokens)

    def change(self, settings: ModelSettings, models: Sequence[str]) -> ModelSettings:
        """The settings of models with what this asks of them; only servers can do it."""
        named = {
            "answer_tokens": self.max_tokens,
            "thinking_tokens": self.thinking_tokens,
            "top_logprobs": _TOP if self.score == "logprobs" else None,
        }
        more = {name: str(value) for name, value in named.items() if value is not None}
        for model in models:
            if more and not model.startswith("openai/"):
                flags = {"answer_tokens": "--max-tokens", "thinking_tokens": "--thinking-tokens"}
                raise InputError(
                    f"{flags.get(next(iter(more)), '--score logprobs')} is for openai/… models,"
                    f" not {model}",
                    hint="serve the model, or leave the option out",
                )
        return replace(settings, params={**settings.params, **more})


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What is evaluated: tasks, models, data, options, and how models are asked."""

    tasks: Annotated[Sequence[str], Argument("NAME, NAME/TASK, or suite for all.", "names")]
    models: AskedModels
    data: Data = None
    split: Split = None
    limit: Limit = None
    sample: Sample = None
    seed: Seed = None
    options: Annotated[
        tuple[Setting, ...],
        Flag(
            "Choose an option of a task; several values make a run of each combination.",
            "--set",
            metavar="[TASK:]OPTION=VALUE[,VALUE…]",
            kind=list[str],
            read=partial(read_settings, "--set"),
        ),
    ] = ()
    invalid: Invalid = None
    out: Annotated[Path, Flag("Where the run directories go.")] = Path("runs")
    captioner: Annotated[
        str | None,
        Flag("Who describes images for tasks that need it. Default: the model.", metavar="MODEL"),
    ] = None
    asking: Annotated[Asking, MadeBy(make_asking)] = field(default_factory=Asking)
    probe: Annotated[
        str,
        Flag(
            "Change one thing: picture=swapped|blank, caption=removed|reworded, options=permuted, "
            "memory=caption|id|template.",
            metavar="WHAT=HOW",
        ),
    ] = ""
    rewordings: Rewordings = None
    variation: Variation = field(default_factory=Variation)


def note_greedy(jobs: Iterable[Job]) -> Iterator[str]:
    """Which repeats were asked at temperature 0, where a seed changes nothing; each task once.

    Repeats keep the temperature of the task's protocol.
    """
    tasks = {job.facts.task: job for job in jobs if job.facts.repeat and job.task.feed is None}
    for name, job in tasks.items():
        settings = job.model.identity.get("settings")
        extra = settings.get("extra") if isinstance(settings, dict) else None
        groups = extra.get("temperature") if isinstance(extra, dict) else None
        if groups is None:
            groups = job.task.ask(next(iter(job.task.items())), None).sampling.temperature
        if groups == 0:
            yield (
                f"note: {name} is asked at temperature 0, as its protocol says: repeats differ only"
                " where the server does; --param temperature=0.7 samples"
            )
