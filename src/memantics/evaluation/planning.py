"""The plan of an evaluation (tasks × options × models), and estimates of calls, tokens and cost.

The estimates are not exact, since every server has its own tokenizer:

- Text: one token per Chinese, Japanese or Korean character, one per four other characters,
  four per message.
- Images: scaled into 2,048 × 2,048 pixels, then to a shorter side of at most 768, then 170 tokens
  per tile of 512 × 512 plus 85 for the whole image, as hosted models charge. Servers that count
  patches of 28 × 28 pixels give about the same number for a meme.
- Replies: 60 tokens for a letter with its reason or for a text, 30 per field of a JSON reply, never
  more than the task's token limit. Reasoning models need many times as many.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from memantics.benchmarks.registry import TaskRef, find_tasks
from memantics.core.data import DataKind
from memantics.core.errors import DataError, ImageError, InputError, MissingExtra
from memantics.core.images import load_images, probe
from memantics.core.model import Model
from memantics.core.parameters import Argument, Flag
from memantics.core.records import Answer, Item, LoadedImage, Request
from memantics.core.rundir import RUN, last_answers
from memantics.core.task import Need, Task
from memantics.evaluation.facts import (
    Scope,
    ScoreBy,
    Setting,
    Variation,
    check_settings,
    expand,
    fix,
    folder_name,
    read_settings,
    repeat_facts,
    repeat_task,
)
from memantics.evaluation.metrics import open_metrics, reopen_metrics, require_fit
from memantics.evaluation.options import AskedModels, MetricNames, complete_tasks
from memantics.evaluation.run import Job, PosedTask, plan, read_fed
from memantics.evaluation.tasks import open_baselines, pose_task
from memantics.models.batch import open_batch
from memantics.models.cache import Cache, cache_key, request_digest
from memantics.models.client import CallSettings, count_image, count_reply, count_request
from memantics.models.kinds import ModelSettings, open_model

# Placeholder of typical length for an answer that does not exist yet.
_PLACEHOLDER = "words that are not there yet " * 8
AskingEngine = Literal["calls", "batch"]
_SERVER = "openai/"
# Maximum number of log-probabilities per token that hosted servers return.
_TOP = 20


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated requests of one run.

    ``done`` of the ``items`` have answers already, and ``cached`` replies are in the cache. At
    least ``calls`` and at most ``most_calls`` requests are sent; the maximum assumes that every
    answer is invalid up to the last retry. ``guessed`` is true if requests contain answers that do
    not exist yet, so that their length is a guess.
    """

    job: Job
    items: int = 0
    done: int = 0
    cached: int = 0
    calls: int = 0
    most_calls: int = 0
    images: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    guessed: bool = False

    def cost(self, prices: tuple[float, float]) -> float:
        """The estimated cost of the calls; prices are per million input and output tokens.

        Models that are not language models have no cost.
        """
        if not self.job.model.cacheable:
            return 0.0
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6

    def dump(self, prices: tuple[float, float] | None) -> dict[str, object]:
        """Convert the estimate to plain data."""
        facts = self.job.facts
        names = [*("items", "done", "cached", "calls", "most_calls", "images")]
        names += ["tokens_in", "tokens_out", "guessed"]
        return {
            "folder": self.job.folder,
            "task": facts.task,
            "model": facts.model,
            "options": facts.options,
            **{name: getattr(self, name) for name in names},
            "cost": self.cost(prices) if prices else None,
        }


@dataclass(frozen=True, slots=True)
class _MeasuredRequest:
    """The request of one item with its measured size in tokens."""

    item: Item
    request: Request
    digest: str
    images: int
    tokens_in: int
    tokens_out: int


def estimate(jobs: Sequence[Job], cache: Cache | None) -> list[Estimate]:
    """Estimate the requests of each run, without calling models or writing files."""
    found: dict[int, Estimate] = {}
    for group in _group(jobs):
        task, guessed = _feed(group[0])
        last = [_read_last(job) for job in group]
        counts = [Estimate(job, guessed=guessed) for job in group]
        for sheet in _measure(task):
            for place, count in enumerate(counts):
                counts[place] = _add(count, sheet, last[place].get(sheet.item.id), cache)
        found.update((id(count.job), count) for count in counts)
    return [found[id(job)] for job in jobs]


def _group(jobs: Iterable[Job]) -> Iterator[list[Job]]:
    """Group runs that send the same requests to different models, to measure requests once."""
    same: dict[tuple[int, ...], list[Job]] = {}
    for job in jobs:
        key = (id(job.task), *((id(job),) if job.needs else ()))
        same.setdefault(key, []).append(job)
    yield from same.values()


def _read_last(job: Job) -> Mapping[str, Answer]:
    return last_answers(job.folder) if (job.folder / RUN).exists() else {}


def _feed(job: Job) -> tuple[Task, bool]:
    """Insert the answers that the task needs from other tasks, as far as they exist."""
    if job.task.feed is None or not job.needs:
        return job.task, False
    memes = {item.group for item in job.task.items()}
    guessed = False
    fed: dict[str, Mapping[str, str]] = {}
    for name, first in job.needs.items():
        known, ended = read_fed(first)
        missing = memes - ended
        guessed = guessed or bool(missing)
        fed[name] = dict.fromkeys(missing, _PLACEHOLDER) | known
    return job.task.feed(fed), guessed


def _measure(task: Task) -> Iterator[_MeasuredRequest]:
    """Measure all requests of a task. Requests with unreadable images are never sent."""
    for item in task.items():
        try:
            request = task.ask(item, None)
            loaded = load_images(request)
            facts = [
                probe(part.data, part.path.name)
                for message in loaded.messages
                for part in message.parts
                if isinstance(part, LoadedImage)
            ]
        except ImageError:
            continue
        yield _MeasuredRequest(
            item,
            request,
            request_digest(loaded),
            len(facts),
            count_request(request) + sum(count_image(fact.width, fact.height) for fact in facts),
            count_reply(request),
        )


def _add(
    count: Estimate, sheet: _MeasuredRequest, last: Answer | None, cache: Cache | None
) -> Estimate:
    job = count.job
    attempts = job.task.invalid.attempts
    count = replace(count, items=count.items + 1)
    if last is not None and (
        last.status == "answered" or (last.status != "failed" and last.attempt + 1 >= attempts)
    ):
        return replace(count, done=count.done + 1)
    if cache is not None and job.model.cacheable and last is None:
        key = cache_key(job.model.identity, sheet.request.sampling, sheet.digest, 0)
        if cache.get(key) is not None:
            return replace(count, cached=count.cached + 1)
    return replace(
        count,
        calls=count.calls + 1,
        most_calls=count.most_calls + max(1, attempts - _used(last)),
        images=count.images + sheet.images,
        tokens_in=count.tokens_in + sheet.tokens_in,
        tokens_out=count.tokens_out + sheet.tokens_out,
    )


def _used(last: Answer | None) -> int:
    """Count earlier attempts at an item; failed ones are repeated and not counted."""
    if last is None:
        return 0
    return last.attempt if last.status == "failed" else last.attempt + 1


@dataclass(frozen=True, slots=True)
class EvaluationPlan:
    """Tasks, models, data, options and call settings of an evaluation."""

    tasks: Annotated[
        Sequence[str],
        Argument(
            "NAME (all tasks of a benchmark), NAME/TASK, or suite (all benchmarks).",
            "names",
            complete=complete_tasks,
        ),
    ]
    models: AskedModels
    scope: Scope = field(default_factory=Scope)
    options: Annotated[
        tuple[Setting, ...],
        Flag(
            "Set a task option; several values make one run per combination.",
            "--set",
            metavar="[TASK:]OPTION=VALUE[,VALUE…]",
            kind=list[str],
            read=partial(read_settings, "--set"),
        ),
    ] = ()
    out: Annotated[Path, Flag("Output folder for the run directories.")] = Path("runs")
    captioner: Annotated[
        str | None,
        Flag(
            "Model that describes images for tasks that need it. Default: the evaluated model.",
            metavar="MODEL",
        ),
    ] = None
    engine: Annotated[
        AskingEngine,
        Flag("One call per item, or the server's batch API, usually at half the price."),
    ] = "calls"
    metrics: MetricNames = None
    calls: CallSettings = field(default_factory=CallSettings)
    variation: Variation = field(default_factory=Variation)


OptionValue = str | int | float | bool


@dataclass(frozen=True, slots=True)
class EvaluationSettings:
    """Settings of an evaluation: the items, and changes to a task's defaults.

    Attributes:
        data: ``release`` or ``sample``. Default: a registered release, else the sample data.
        split: A named part of the data. Default: the task's default split.
        limit: Evaluate N items, stratified by language and question type.
        sample: Evaluate a random sample of N items; all items of a sampled meme are included.
        seed: Seed of the sample. Default: 0.
        options: Options of tasks by name, or by ``TASK:NAME``. A list of values makes one run per
            value and needs :func:`evaluate_suite`.
        invalid: Policy for refused and unparsed answers: ``wrong``, ``drop``, ``retry:N`` or
            ``retry:N,drop``. Default: the task's policy.
        captioner: Model that describes images for tasks that need it. Default: the evaluated model.
        perturbation: Change of one input, such as ``image=swapped``; :func:`perturb` compares
            several.
        rewordings: Table of paraphrased captions with the columns ``image`` and ``text``.
        prompts: Folder of prompt files that replace those of the task.
        shots: JSON lines file of few-shot examples with images.
        repeat: Number of times that everything is evaluated, with different seeds. More than one
            needs :func:`evaluate_suite`.
        score: ``reply`` parses the reply; ``logprobs`` takes the most probable option.
        max_tokens: Maximum number of tokens of an answer, without the reasoning before it.
        thinking_tokens: Additional tokens for reasoning before the answer.
        engine: ``calls`` sends one request per item; ``batch`` uses the batch API of a server.
        metrics: Registered metrics to compute in addition to the task's own.
    """

    data: DataKind | None = None
    split: str | None = None
    limit: int | None = None
    sample: int | None = None
    seed: int | None = None
    options: Mapping[str, OptionValue | Sequence[OptionValue]] = field(default_factory=dict)
    invalid: str | None = None
    captioner: str | None = None
    perturbation: str = ""
    rewordings: str | Path | None = None
    prompts: str | Path | None = None
    shots: str | Path | None = None
    repeat: int = 1
    score: ScoreBy = "reply"
    max_tokens: int | None = None
    thinking_tokens: int | None = None
    engine: AskingEngine = "calls"
    metrics: Sequence[str] | None = None

    def plan(
        self,
        tasks: str | Sequence[str],
        models: str | Sequence[str],
        calls: CallSettings | None = None,
        out: str | Path = "runs",
    ) -> EvaluationPlan:
        """Plan the evaluation of tasks and models with these settings."""
        words, folder, shown = (
            None if place is None else Path(place)
            for place in (self.rewordings, self.prompts, self.shots)
        )
        return EvaluationPlan(
            tasks=[tasks] if isinstance(tasks, str) else list(tasks),
            models=[models] if isinstance(models, str) else list(models),
            scope=Scope(self.data, self.split, self.limit, self.sample, self.seed),
            options=read_options(self.options),
            out=Path(out),
            captioner=self.captioner,
            engine=self.engine,
            metrics=self.metrics,
            calls=calls or CallSettings(),
            variation=Variation(
                self.invalid,
                self.perturbation,
                words,
                folder,
                shown,
                self.repeat,
                self.score,
                self.max_tokens,
                self.thinking_tokens,
            ),
        )


def read_options(
    options: Mapping[str, OptionValue | Sequence[OptionValue]],
) -> tuple[Setting, ...]:
    """Read options by name or by ``TASK:NAME``, with one value or a list of values.

    >>> read_options({"order": "answer_first", "mquest/qa:shots": [0, 2]})[1]
    Setting(where='mquest/qa', option='shots', values=('0', '2'))
    """
    read = []
    for name, given in options.items():
        where, _, option = name.rpartition(":")
        values = [given] if isinstance(given, OptionValue) else given
        read.append(Setting(where, option, tuple(dict.fromkeys(map(_write_option, values)))))
    return tuple(read)


def _write_option(value: OptionValue) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def plan_evaluation(
    wanted: EvaluationPlan, open_named: Callable[[str], Model] | None = None
) -> tuple[list[Job], dict[str, InputError]]:
    """Plan all runs before any model is called; raise an error for runs that cannot work.

    It returns the runs, each after the runs it needs, and the reasons for skipped tasks. A task
    that was not named individually is skipped if its data or a package is missing. ``open_named``
    opens a model by its name.
    """
    settings = _ask_servers(wanted.variation, wanted.calls.model_settings, wanted.models)
    refs = find_tasks(list(wanted.tasks))
    known = {ref.name: ref.card for ref in find_tasks(["suite"])} if wanted.options else {}
    check_settings(wanted.options, {ref.name: ref.card for ref in refs}, known)
    models, captioner = dict.fromkeys(wanted.models), wanted.captioner
    names = dict.fromkeys([*models, *([captioner] if captioner else [])])
    opener = open_named or _choose_opener(wanted, settings)
    opened = {name: opener(name) for name in names}
    planner = _Planner(wanted, opened.get(captioner or ""))
    skipped: dict[str, InputError] = {}
    for ref in refs:
        try:
            posed = [
                planner.pose(ref, options) for options in expand(ref.name, ref.card, wanted.options)
            ]
        except (DataError, MissingExtra) as error:
            if ref.name in wanted.tasks:
                raise
            skipped[ref.name] = error
            continue
        for question in posed:
            for name in models:
                for number in range(wanted.variation.repeat):
                    planner.add(question, opened[name], number)
    if not planner.jobs and skipped:
        raise _nothing_left(skipped)
    return _add_metrics(wanted.metrics, list(planner.jobs.values())), skipped


def _add_metrics(names: Sequence[str] | None, jobs: list[Job]) -> list[Job]:
    """Add the named extra metrics to the runs; raise an error if one cannot be used."""
    if names is None:
        for job in jobs:
            reopen_metrics(job.folder)
        return jobs
    require_fit(names, list({job.facts.task: job.task for job in jobs if job.asked}.values()))
    chosen = tuple(metric.name for metric in open_metrics(names))
    return [replace(job, metrics=chosen) if job.asked else job for job in jobs]


def _choose_opener(wanted: EvaluationPlan, settings: ModelSettings) -> Callable[[str], Model]:
    """Return the function that opens models; with --engine batch, servers use their batch API."""
    if wanted.engine == "calls":
        return partial(open_model, settings=settings)
    if not any(name.startswith(_SERVER) for name in wanted.models):
        hint = "use a model openai/NAME, or remove --engine"
        raise InputError("--engine batch works with models on servers only", hint=hint)

    def open_named(name: str) -> Model:
        return (open_batch if name.startswith(_SERVER) else open_model)(name, settings)

    return open_named


def _ask_servers(
    variation: Variation, settings: ModelSettings, models: Sequence[str]
) -> ModelSettings:
    """Add request settings (such as log-probabilities) to the models; only servers support them."""
    named = {
        "answer_tokens": variation.max_tokens,
        "thinking_tokens": variation.thinking_tokens,
        "top_logprobs": _TOP if variation.score == "logprobs" else None,
    }
    more = {name: str(value) for name, value in named.items() if value is not None}
    for model in models:
        if more and not model.startswith(_SERVER):
            flags = {"answer_tokens": "--max-tokens", "thinking_tokens": "--thinking-tokens"}
            raise InputError(
                f"{flags.get(next(iter(more)), '--score logprobs')} needs an openai/… model,"
                f" not {model}",
                hint="serve the model over an OpenAI-compatible API, or remove the option",
            )
    return replace(settings, params={**settings.params, **more})


def _nothing_left(skipped: Mapping[str, InputError]) -> InputError:
    task, first = next(iter(skipped.items()))
    if len({str(error) for error in skipped.values()}) == 1:
        return first
    return InputError(
        f"the data of all {len(skipped)} tasks are missing; {task}: {first.what}", hint=first.hint
    )


class _Planner:
    """Collects the planned runs; a run that several others need is planned once."""

    def __init__(self, wanted: EvaluationPlan, captioner: Model | None) -> None:
        self.jobs: dict[Path, Job] = {}
        self._wanted = wanted
        self._captioner = captioner
        self._posed: dict[tuple[str, frozenset[tuple[str, str]], str], PosedTask] = {}

    def pose(
        self,
        ref: TaskRef,
        options: Mapping[str, str],
        split: str | None = None,
        trail: tuple[str, ...] = (),
    ) -> PosedTask:
        """Open a task together with its prerequisite tasks."""
        scope, variation = self._wanted.scope, self._wanted.variation
        scope = replace(scope, split=split or scope.split)
        question = pose_task(ref, options, scope, variation)
        trail = (*trail, ref.name)
        needs: dict[str, PosedTask] = {}
        for need in question.task.needs:
            if need.task in trail:
                raise DataError(need.task, f"needs its own answers ({' > '.join(trail)})")
            needs[need.name] = self._pose_need(need, question.split, trail)
        return replace(question, needs=needs)

    def _pose_need(self, need: Need, split: str, trail: tuple[str, ...]) -> PosedTask:
        (ref,) = find_tasks([need.task])
        options = fix(ref.name, ref.card, self._wanted.options) | dict(need.options)
        key = (need.task, frozenset(options.items()), split)
        if key not in self._posed:
            split_there = split if split in ref.card.splits else None
            self._posed[key] = self.pose(ref, options, split_there, trail)
        return self._posed[key]

    def add(self, question: PosedTask, model: Model, repeat: int = 0, *, asked: bool = True) -> Job:
        """Add the run of a task by a model, after the runs it needs; each run is added once."""
        needs: dict[str, Job] = {}
        for need in question.task.needs:
            other = self._captioner if need.captioner and self._captioner is not None else model
            needs[need.name] = self.add(question.needs[need.name], other, asked=False)
        place = (self._wanted.out, self._wanted.calls.prices)
        job = plan(question, model, open_baselines(question.cards[1]), place, needs)
        if repeat:
            facts, task = repeat_facts(job.facts, repeat), repeat_task(job.task, repeat)
            folder = self._wanted.out / folder_name(facts)
            job = replace(job, facts=facts, task=task, folder=folder)
        known = self.jobs.get(job.folder, replace(job, asked=asked))
        # A prerequisite run may also be requested itself; it keeps its place before the others.
        self.jobs[job.folder] = replace(known, asked=True) if asked else known
        return self.jobs[job.folder]


def note_greedy(jobs: Iterable[Job]) -> Iterator[str]:
    """Warn about repeats at temperature 0, where a seed has no effect; once per task.

    Repeats keep the temperature of the task's protocol.
    """
    tasks = {job.facts.task: job for job in jobs if job.facts.repeat and job.task.feed is None}
    for name, job in tasks.items():
        settings = job.model.identity.get("settings")
        extra = settings.get("extra") if isinstance(settings, dict) else None
        temperature = extra.get("temperature") if isinstance(extra, dict) else None
        if temperature is None:
            temperature = job.task.ask(next(iter(job.task.items())), None).sampling.temperature
        if temperature == 0:
            yield (
                f"note: {name} uses temperature 0 by its protocol, so repeats differ only"
                " if the server is not deterministic; add --param temperature=0.7 to sample"
            )
