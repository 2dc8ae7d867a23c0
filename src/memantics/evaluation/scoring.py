"""Score a run directory without calling a model, except trivial baselines."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from math import fsum
from pathlib import Path
from statistics import fmean
from typing import IO

from memantics.benchmarks.factories import hits
from memantics.core import records, rundir
from memantics.core.errors import StoreError
from memantics.core.files import open_regular
from memantics.core.model import Model
from memantics.core.records import Answer, Outcome, Reply, Score
from memantics.core.rundir import read_facts, read_scores, write_scores
from memantics.core.task import InvalidPolicy, Task, Unparsed
from memantics.evaluation.ask import choose, score_certainty, state_odds
from memantics.evaluation.metrics import Metric, apply_metrics, choose_metrics
from memantics.evaluation.rubric import read_judged
from memantics.metrics.interval import majority, pass_at_k, repeat_deviation, split_variance
from memantics.models.engine import read_reply

# The random baseline, its maximum number of repetitions, and a sufficient total of random answers.
RANDOM, MOST_SAMPLES, _ENOUGH = "baseline/random", 40, 2000
# Number of forms read at a time; the last two batches are kept. It exceeds the number of concurrent
# calls, whose answers arrive in any order.
_FORMS = 1000


class _RunItems:
    """The items of a run by id; only a few of their forms are kept in memory.

    Answers are nearly in the order of the items, so the form of an answered item was usually read
    recently; otherwise it is read again.
    """

    def __init__(self, folder: Path) -> None:
        self.all: dict[str, rundir.StoredItem] = {}
        self._lines = rundir.read_stored_items(folder)
        self._forms: dict[str, records.Form] = {}
        self._former: dict[str, records.Form] = {}

    def find(self, name: str) -> rundir.StoredItem | None:
        """Return the item of an answer; None if its line in ``items.jsonl`` was removed."""
        while name not in self.all and self._advance():
            pass
        return self.all.get(name)

    def find_form(self, item: rundir.StoredItem) -> records.Form:
        """Return the form of an item."""
        return self._forms.get(item.id) or self._former.get(item.id) or item.form

    def read_rest(self) -> None:
        """Read the remaining items, which have no answers."""
        while self._advance():
            pass

    def _advance(self) -> bool:
        """Read the next batch of items; return False at the end."""
        read = list(islice(self._lines, _FORMS))
        if read:
            self._former, self._forms = self._forms, {item.id: form for item, form in read}
            self.all.update((item.id, item) for item, _ in read)
        return bool(read)


async def score_run(
    folder: Path,
    task: Task,
    baselines: Sequence[Model],
    metrics: Sequence[str] | None = None,
    *,
    strict: bool = False,
) -> rundir.Scores:
    """Parse the raw answers of a run again, score them, and write ``scores.json``.

    Args:
        folder: The run directory.
        task: The task of the run.
        baselines: Trivial models to score on the same items.
        metrics: Names of metrics besides the task's own; None: those of the last scoring.
        strict: Raise an error for a named metric that does not apply to the task, instead of
            skipping it.

    Raises:
        InputError: A metric is unknown or failed. If a metric failed, all other scores are written.
    """
    facts, items = rundir.read_facts(folder), _RunItems(folder)
    ended: dict[str, records.Outcome] = {}
    usage = add_up(_note_outcomes(folder, items, task, ended), facts.prices)
    if not items.all:
        raise StoreError(
            f"run {folder} has no items yet", hint="repeat the run command that created it"
        )
    outcomes = [ended[name] for name in items.all if name in ended]
    trivial = [model for model in baselines if _base(model) != facts.model]
    scored = keep_scored(outcomes, task.invalid)
    first = next(iter(items.all.values()))
    wanted = choose_metrics(metrics, folder, task, first, strict=strict)
    added, failure = apply_metrics(wanted, scored)
    working = tuple(m for m in wanted if any(score.key == m.name for score in added))
    scores = rundir.Scores(
        main=task.main,
        counts=count_statuses(outcomes),
        scores=(*task.score(scored), *score_certainty(scored), *read_judged(folder), *added),
        baselines=(
            *await _score_baselines(items.all.values(), task, trivial, working),
            *(
                rundir.BaselineScores(*row)
                for row in (task.people(outcomes) if task.people else {}).items()
            ),
        ),
        usage=usage,
        metrics=tuple(metric.name for metric in working),
        rescored=_list_rescored(facts, task),
    )
    rundir.write_scores(folder, scores)
    if failure is not None:
        raise failure
    return scores


def _list_rescored(facts: rundir.RunFacts, task: Task) -> dict[str, str]:
    """Return the options and the policy of a scoring that are not those of the run."""
    now = {**task.options, "invalid": str(task.invalid)}
    then = {**facts.options, "invalid": facts.invalid or str(task.invalid)}
    # Some options, such as MER-Bench's alpha, are stored only if they are not the default.
    return {name: value for name, value in now.items() if then.get(name) != value}


def read_outcomes(folder: Path, task: Task) -> list[records.Outcome]:
    """Parse the answers of a run again; return the outcome of every item in order."""
    items, ended = _RunItems(folder), dict[str, records.Outcome]()
    for _ in _note_outcomes(folder, items, task, ended):
        pass
    return [ended[name] for name in items.all if name in ended]


def _note_outcomes(
    folder: Path, items: _RunItems, task: Task, ended: dict[str, records.Outcome]
) -> Iterator[Answer]:
    """Parse every attempt and keep only the last outcome of each item in memory.

    Stored replies are parsed again, so a corrected parser needs no new model call.
    """
    for answer in rundir.read_answers(folder):
        item = items.find(answer.item)
        if item is not None:
            ended[answer.item] = _outcome(item, answer, task, items)
        yield answer
    items.read_rest()


def count_statuses(outcomes: Iterable[records.Outcome]) -> dict[str, int]:
    """Count the four answer statuses; each status has an entry.

    >>> count_statuses([])
    {'answered': 0, 'refused': 0, 'unparsed': 0, 'failed': 0}
    """
    counts = dict.fromkeys(records.STATUSES, 0)
    for outcome in outcomes:
        counts[outcome.status] += 1
    return {str(status): count for status, count in counts.items()}


def keep_scored(
    outcomes: Iterable[records.Outcome], policy: InvalidPolicy
) -> list[records.Outcome]:
    """Keep the outcomes that the policy for invalid answers scores."""
    return [outcome for outcome in outcomes if counts(outcome, policy)]


def counts(outcome: records.Outcome, policy: InvalidPolicy) -> bool:
    """Whether an outcome is scored. A failed call is never scored."""
    if outcome.status == "answered":
        return True
    return outcome.status != "failed" and policy.then == "wrong"


def add_up(attempts: Iterable[Answer], prices: tuple[float, float] | None) -> rundir.Usage:
    """Sum calls, tokens, seconds and cost; ``prices`` are per million input and output tokens.

    Tokens are counted for cached replies too; cached replies cost nothing.

    >>> paid = Answer("a", 0, "answered", Reply("", tokens_in=1000, tokens_out=10))
    >>> add_up([paid, replace(paid, item="b", cached=True)], (2.0, 8.0)).cost
    0.00208
    """
    calls = cached = count = tokens_in = tokens_out = paid_in = paid_out = 0
    seconds = 0.0
    for answer in attempts:
        count += 1
        tokens_in += answer.reply.tokens_in
        tokens_out += answer.reply.tokens_out
        seconds += answer.seconds
        if answer.cached:
            cached += 1
        else:
            calls += answer.calls
            paid_in += answer.reply.tokens_in
            paid_out += answer.reply.tokens_out
    cost = None
    if prices is not None:
        cost = round((paid_in * prices[0] + paid_out * prices[1]) / 1e6, 6)
    return rundir.Usage(calls, cached, count, tokens_in, tokens_out, round(seconds, 4), cost)


def _outcome(
    item: rundir.StoredItem, answer: Answer, task: Task, items: _RunItems
) -> records.Outcome:
    attempts = answer.attempt + 1
    if answer.status in ("refused", "failed"):
        return records.Outcome(item, answer.status, None, attempts)
    form, masses = items.find_form(item), answer.reply.masses
    said = choose(masses, form) if masses else answer.reply.text
    status, value, _ = read_reply(Reply(said), lambda text: task.parse(text, form))
    odds = state_odds(masses, form, task, item.gold) if masses else None
    return records.Outcome(item, status, value, attempts, odds)


def name_baselines(models: Iterable[Model]) -> tuple[str, ...]:
    """Return the names of scored baselines; all seeds of the random baseline are one baseline."""
    return tuple(dict.fromkeys(map(_base, models)))


def _base(model: Model) -> str:
    return model.name.partition("?")[0]


async def _score_baselines(
    items: Collection[rundir.StoredItem],
    task: Task,
    models: Sequence[Model],
    metrics: Sequence[Metric] = (),
) -> tuple[rundir.BaselineScores, ...]:
    """Score each baseline; the random baseline gets its expected score.

    One random answer per item gives a variable score on few items, so several repetitions are
    averaged. Metrics named by the user have no confidence interval here, and are skipped if they
    fail.
    """
    if not models:
        return ()
    most = max(1, min(MOST_SAMPLES, _ENOUGH // len(items)))
    # Free text has no options to sample, so every repetition would be the same.
    if most > 1 and all(f.kind == "text" and not f.options for i in items for f in i.form.fields):
        most = 1
    names = name_baselines(models)
    drawn = [
        baseline for name in names for baseline in [m for m in models if _base(m) == name][:most]
    ]
    with open_regular(next(iter(items)).path) as file:
        said = await _ask_baselines(file, items, task, drawn)
    scored: dict[str, list[tuple[Score, ...]]] = {name: [] for name in names}
    for model, outcomes in zip(drawn, said, strict=True):
        added, _ = apply_metrics(metrics, outcomes, intervals=False)
        scored[_base(model)].append((*task.score(outcomes), *added))
    return tuple(rundir.BaselineScores(name, average(draws)) for name, draws in scored.items())


def average(draws: Sequence[tuple[Score, ...]]) -> tuple[Score, ...]:
    """Average each metric and its interval bounds over the repetitions in which it is defined.

    >>> average([(Score("f1", 0.2, 9, 0.1, 0.4),), (Score("f1", 0.4, 9, 0.3, 0.8),)])[0].value
    0.3
    """
    if len(draws) == 1:
        return draws[0]
    found: dict[tuple[str, str, str], list[Score]] = {}
    for draw in draws:
        for score in draw:
            found.setdefault((score.key, score.by, score.label), []).append(score)
    return tuple(
        replace(
            scores[0],
            value=_mean(score.value for score in scores),
            low=_mean(score.low for score in scores),
            high=_mean(score.high for score in scores),
            # A note that differs between repetitions is dropped.
            note=scores[0].note if len({score.note for score in scores}) == 1 else "",
        )
        for scores in found.values()
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    # The mean is rounded, so that the mean of equal values is exactly that value.
    return round(fsum(known) / len(known), 12) if known else None


async def _ask_baselines(
    file: IO[bytes], items: Iterable[rundir.StoredItem], task: Task, models: Sequence[Model]
) -> list[list[records.Outcome]]:
    """Answer every item with each baseline; each form is read once for all of them."""
    said: list[list[records.Outcome]] = [[] for _ in models]
    for item in items:
        whole = rundir.load_item(file, item)
        # Image names seed the random choice, so that equal forms get different answers.
        request = records.Request((records.Message("user", whole.images),), whole.form)
        for model, outcomes in zip(models, said, strict=True):
            reply = await model.answer(request)
            try:
                value = task.parse(reply.text, whole.form)
                outcomes.append(records.Outcome(item, "answered", value))
            except Unparsed:
                outcomes.append(records.Outcome(item, "unparsed"))
    return said


# Statistics over runs that differ only in their seed, stored with the scores of the first run.

REPEATS, DEVIATION = "repeats", "SD across repeats"


def group_repeats(folders: Sequence[Path]) -> list[list[Path]]:
    """Group runs that are repeats of each other, in the order of their numbers.

    Two runs with the same number, such as a run and a later copy of it, belong to different groups,
    and so do runs on other items.
    """
    found: dict[tuple[object, ...], list[tuple[int, Path]]] = {}
    for folder in folders:
        facts = read_facts(folder)
        first = facts.repeat_of or facts.fingerprint
        asked = (first, facts.limit, facts.sample, facts.perturbation)
        place = 0
        while any(number == facts.repeat for number, _ in found.get((*asked, place), ())):
            place += 1
        found.setdefault((*asked, place), []).append((facts.repeat, folder))
    return [[folder for _, folder in sorted(pairs)] for pairs in found.values()]


def note_repeats(folders: Sequence[Path], task: Task) -> None:
    """Write the statistics over repeated runs into the scores of the first run."""
    first = read_scores(folders[0])
    scores = tuple(score for score in first.scores if score.by != REPEATS)
    if len(folders) > 1:
        runs = [{o.item.id: o for o in read_outcomes(folder, task)} for folder in folders]
        means = [
            next((s.value for s in read_scores(f).scores if _is_main(s, first.main)), None)
            for f in folders
        ]
        scores += tuple(score_repeats(task, first.main, runs, means))
    write_scores(folders[0], replace(first, scores=scores))


def _is_main(score: Score, main: str) -> bool:
    return score.key == main and not score.by


def score_repeats(
    task: Task,
    main: str,
    runs: Sequence[dict[str, Outcome]],
    means: Sequence[float | None],
) -> Iterator[Score]:
    """Compute mean and SD of the main metric over repeats; for accuracy also variance and majority.

    Only items that every repeat answered or that count as wrong are used.
    """
    count = len(runs)
    known = [value for value in means if value is not None]
    deviation = repeat_deviation([known]) if len(known) > 1 else None

    def make_score(label: str, value: float | None, n: int, key: str = main) -> Score:
        return Score(key, value, n, by=REPEATS, label=label)

    yield make_score(f"mean of {count}", fmean(known) if known else None, len(known))
    yield make_score(DEVIATION, deviation, len(known))
    shared = [
        [run[name] for run in runs]
        for name in runs[0]
        if all(name in run and counts(run[name], task.invalid) for run in runs)
    ]
    if not shared or not all(isinstance(o.item.gold, str | int) for row in shared for o in row):
        return
    marks = [[float(hit) for hit in hits(row)] for row in shared]
    n = len(marks)
    split = split_variance(marks)
    yield make_score("variance between items", split.items if split else None, n, "right")
    yield make_score("variance between repeats", split.repeats if split else None, n, "right")
    for k in range(1, count + 1):
        yield make_score(f"pass@{k}", pass_at_k(marks, k), n, "right")
    votes = [majority([_vote(o) for o in row]) == row[0].item.gold for row in shared]
    yield make_score(f"majority@{count}", fmean(votes), n, "right")


def _vote(outcome: Outcome) -> str | int | None:
    value = outcome.value
    return value if outcome.status == "answered" and isinstance(value, str | int) else None
