"""``policy test``: models decide memes under one or two policies, and are compared with people."""

from __future__ import annotations

import asyncio
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from memantics.core.data import inside
from memantics.core.errors import DataError, InputError
from memantics.core.ids import read_id
from memantics.core.parameters import Argument, Attempts, Flag
from memantics.core.policy import NO_CLAUSE, Policy, read_policy
from memantics.core.queue import ANNOTATIONS, AggregatedAnnotation, read_annotations
from memantics.core.records import Score
from memantics.core.tables import read_rows
from memantics.core.waiting import run_sync
from memantics.models.client import (
    CallSettings,
    ModelClient,
    ProgressWatch,
    open_client,
    split_watch,
)
from memantics.moderation.columns import TableColumns
from memantics.moderation.policies.asking import (
    PolicyMeme,
    PolicyReply,
    invert_clause,
    list_own_memes,
    make_decision_step,
    make_sample_step,
    remove_clause,
)
from memantics.moderation.policies.pages import PolicyTest
from memantics.moderation.policies.scores import (
    ClauseFlips,
    PolicyAnswer,
    PolicyRun,
    compare_runs,
    count_confusion,
    measure_agreement,
    measure_entropy,
    measure_people,
)

_YES = {"yes": "", "no": NO_CLAUSE}


@dataclass(frozen=True, slots=True)
class PolicyTestSettings:
    """What ``policy test`` measures beside agreement.

    Attributes:
        samples: Decisions sampled from each explanation alone, for the conditional entropy.
        flips: Invert and remove each clause, and count the decisions that flip.
        attempts: Maximum number of attempts until a reply can be parsed.
        limit: Test only the first memes.
    """

    samples: Annotated[
        int,
        Flag(
            "Number of decisions to sample from each explanation alone, to measure their entropy.",
            min=0,
            max=50,
        ),
    ] = 0
    flips: Annotated[
        bool, Flag("Invert or remove one clause at a time, and count the decisions that change.")
    ] = False
    attempts: Attempts = 2
    limit: Annotated[int | None, Flag("Use only the first N memes. Default: all.", min=1)] = None


def read_policy_memes(path: Path, policy: Policy) -> tuple[list[PolicyMeme], dict[str, list[str]]]:
    """Read memes with gold clauses from a table or an annotation file.

    A table has the columns ``id``, ``text``, ``image`` (or their usual names, such as ``img``),
    ``clause`` (a number, ``none`` or empty), ``language`` and ``group`` (the meme of some cases).
    From an annotation file come the aggregated clauses, and the individual ones, which are returned
    by meme.

    Raises:
        DataError: A row has no content, or a clause that the policy does not have.
    """
    if path.is_dir():
        path = path / ANNOTATIONS
    if not path.is_file():
        raise InputError(f"{path}: no such file", hint="give a table or an annotation file")
    if path.suffix == ".jsonl" and _is_annotations(path):
        return _read_annotated(path, policy)
    memes: list[PolicyMeme] = []
    seen: set[str] = set()
    for number, row in read_rows(path, detect=True):
        columns = TableColumns().find(row)
        if number == 1 and not {"text", "image"} & columns.keys():
            named = ", ".join(name[:40] for name in list(row)[:8])
            raise DataError(
                path,
                f"has no column with texts or images; its columns are {named}",
                hint="rename them to text or image, and the gold clauses to clause",
            )
        name = read_id(row.get(columns.get("id", "")) or str(number), path, number)
        if name in seen:
            raise DataError(path, f"id {name!r} occurs twice", row=number)
        seen.add(name)
        gold = _read_gold(row.get("clause") or "", policy, path, number)
        text, place = row.get(columns.get("text", "")) or "", row.get(columns.get("image", ""))
        image = inside(path.parent, place) if place else None
        if not text.strip() and image is None:
            raise DataError(path, f"meme {name!r} has no text and no image", row=number)
        language, group = row.get("language") or "", row.get("group") or ""
        memes.append(PolicyMeme(name, text, image, language, gold, group))
    return memes, {}


def _read_gold(given: str, policy: Policy, path: Path, number: int) -> str:
    gold = given.strip()
    if gold and gold != NO_CLAUSE and policy.find(gold) is None:
        raise DataError(
            path,
            f"{gold[:20]!r} is not a clause of {policy.id}",
            row=number,
            hint=f"use {', '.join(one.number for one in policy.clauses)} or {NO_CLAUSE}",
        )
    return gold


def _is_annotations(path: Path) -> bool:
    first = next(iter(read_rows(path)), (0, {}))[1]
    return {"item", "workflow", "annotations"} <= first.keys()


def _read_annotated(path: Path, policy: Policy) -> tuple[list[PolicyMeme], dict[str, list[str]]]:
    memes: list[PolicyMeme] = []
    votes: dict[str, list[str]] = {}
    for number, one in enumerate(read_annotations(path), 1):
        gold = _read_gold(_find_clause(one.values), policy, path, number)
        text = str(one.hidden.get("text") or "")
        image = one.hidden.get("image")
        place = inside(path.parent, image) if isinstance(image, str) and image else None
        if not text.strip() and place is None:
            continue
        name = str(one.hidden.get("id") or one.item)
        memes.append(PolicyMeme(name, text, place, str(one.hidden.get("language") or ""), gold))
        votes[name] = [said for said in _list_votes(one) if said]
    return memes, votes


def _find_clause(values: Mapping[str, object]) -> str:
    harmful = str(values.get("harmful") or "")
    return str(values.get("clause") or "") if harmful == "yes" else _YES.get(harmful, "")


def _list_votes(annotation: AggregatedAnnotation) -> Iterator[str]:
    for one in annotation.annotations:
        yield _find_clause(one.values)


def measure_policy(
    policy: Annotated[Path, Argument("Policy file.", metavar="POLICY.md")],
    models: Annotated[Sequence[str], Flag("Model, as KIND/NAME; repeatable.", "--model -m")],
    *,
    data: Annotated[
        Path | None,
        Flag("Table with id, text, image, clause; or annotations. Default: the policy's examples."),
    ] = None,
    against: Annotated[
        Path | None, Flag("Second policy, compared with the first on the same memes.")
    ] = None,
    settings: PolicyTestSettings | None = None,
    calls: CallSettings | None = None,
    folder: Annotated[
        Path, Flag("Folder of the call logs; logged calls are reused.", "--calls")
    ] = Path("policy-test"),
    progress: ProgressWatch | None = None,
) -> PolicyTest:
    """Let models decide memes by a policy; compare them with correct clauses and each other.

    Args:
        policy: The policy file.
        models: Models, as ``KIND/NAME``.
        data: Memes with gold clauses. Default: the text examples of the policy.
        against: A second policy, compared with the first on the same memes.
        settings: What to measure beside agreement.
        calls: Settings of the model calls.
        folder: Folder of the call logs; logged calls are reused.
        progress: Called with the progress of the calls.

    Returns:
        Counts by status, agreement by clause, confusion, entropy, flips and comparisons.

    Raises:
        DataError: A policy or the data are not valid.
        InputError: No model or no meme was given.

    Example:
        >>> mm.measure_policy("policy.md", ["openai/x"]).table()  # doctest: +SKIP
    """
    settings, calls = settings or PolicyTestSettings(), calls or CallSettings()
    read = [read_policy(policy), *([read_policy(against)] if against else [])]
    memes, votes = read_policy_memes(Path(data), read[0]) if data else (list_own_memes(read[0]), {})
    memes, unseen = _drop_missing_images(memes[: settings.limit])
    names = list(dict.fromkeys(models))
    if not names:
        raise InputError("no model given", hint="add --model, for example openai/NAME")
    if not memes:
        raise InputError("there is no meme to test", hint="add text examples, or give --data")
    if len({one.digest for one in read}) < len(read):
        raise InputError(f"{against} is the same policy as {policy}", hint="give another version")
    pairs = [(name, one) for name in names for one in read]
    work = _run_all(pairs, memes, settings, calls, Path(folder), progress)
    runs = run_sync(work)
    gold = sum(bool(one.gold) for one in memes)
    shown = str(data) if data else f"examples of {read[0].id}"
    people = measure_people(votes)
    pairs_of_runs = compare_runs(runs)
    return PolicyTest(shown, len(memes), gold, runs, pairs_of_runs, people, Path(folder), unseen)


def _drop_missing_images(memes: Sequence[PolicyMeme]) -> tuple[list[PolicyMeme], int]:
    """Let memes without their image file be decided by their text; return how many there are."""
    lost = [
        one.text.strip() != "" and one.image is not None and not one.image.is_file()
        for one in memes
    ]
    found = [
        replace(one, image=None) if gone else one for one, gone in zip(memes, lost, strict=True)
    ]
    return found, sum(lost)


async def _run_all(
    pairs: Sequence[tuple[str, Policy]],
    memes: Sequence[PolicyMeme],
    settings: PolicyTestSettings,
    calls: CallSettings,
    out: Path,
    progress: ProgressWatch | None,
) -> tuple[PolicyRun, ...]:
    """Test each model under each policy, one after the other."""
    runs: list[PolicyRun] = []
    watches = split_watch(progress, len(pairs))
    for (model, policy), watch in zip(pairs, watches, strict=True):
        folder = out / re.sub(r"[^A-Za-z0-9_.-]+", "-", model) / policy.digest[:12]
        async with open_client(model, calls, folder, watch) as client:
            client.expect(len(memes))
            answers = await _decide_all(client, policy, memes, settings.attempts)
            run = PolicyRun(
                client.model,
                policy.name,
                Counter(one.status for one in answers),
                measure_agreement(answers),
                count_confusion(answers),
                tuple(answers),
            )
            if settings.samples:
                entropy = await _sample(client, policy, answers, settings.samples)
                run = replace(run, entropy=entropy)
            if settings.flips:
                flips = await _flip_clauses(client, policy, answers, settings.attempts)
                run = replace(run, flips=flips)
            spent = client.progress
            cost = spent.cost(calls.prices) if calls.prices else None
        runs.append(replace(run, tokens_in=spent.tokens_in, tokens_out=spent.tokens_out, cost=cost))
    return tuple(runs)


async def _decide_all(
    client: ModelClient,
    policy: Policy,
    memes: Sequence[PolicyMeme],
    attempts: int,
    name: str = "decide",
) -> list[PolicyAnswer]:
    steps = (make_decision_step(policy, meme, attempts=attempts, name=name) for meme in memes)
    taken = await asyncio.gather(*(client.take(step) for step in steps))
    return [
        PolicyAnswer(meme, one.status, one.value, one.reason)
        for meme, one in zip(memes, taken, strict=True)
    ]


async def _sample(
    client: ModelClient, policy: Policy, answers: Sequence[PolicyAnswer], count: int
) -> Score | None:
    """Sample decisions from each explanation alone, and measure their entropy."""
    explained = [
        (one.meme, one.reply) for one in answers if one.reply is not None and one.reply.explanation
    ]
    client.expect(count * len(explained))
    steps = [
        (meme.id, make_sample_step(policy, meme, reply.explanation, number))
        for meme, reply in explained
        for number in range(count)
    ]
    taken = await asyncio.gather(*(client.take(step) for _, step in steps))
    samples: dict[str, list[str]] = defaultdict(list)
    for (name, _), one in zip(steps, taken, strict=True):
        if isinstance(one.value, PolicyReply):
            samples[name].append(one.value.clause)
    return measure_entropy(samples, len(policy.clauses) + 1)


async def _flip_clauses(
    client: ModelClient, policy: Policy, answers: Sequence[PolicyAnswer], attempts: int
) -> tuple[ClauseFlips, ...]:
    """Invert and remove each cited clause, and count the verdicts that change."""
    decided = [one for one in answers if one.reply is not None]
    cited = dict.fromkeys(one.clause for one in decided if one.clause != NO_CLAUSE)
    changes = [("inverted", invert_clause), ("removed", remove_clause)]
    found: list[ClauseFlips] = []
    for number in (str(name) for name in cited):
        for kind, change in changes:
            changed = change(policy, number)
            if changed == policy:
                continue  # the only clause cannot be removed
            client.expect(len(decided))
            memes = [one.meme for one in decided]
            again = await _decide_all(client, changed, memes, attempts, f"{kind}-{number}")
            own, others = Counter[str](), Counter[str]()
            for one, other in zip(decided, again, strict=True):
                if other.reply is None or one.reply is None:
                    continue
                side = own if one.clause == number else others
                side["all"] += 1
                side["flipped"] += one.reply.verdict != other.reply.verdict
            counts = own["all"], own["flipped"], others["all"], others["flipped"]
            found.append(ClauseFlips(number, kind, *counts))
    return tuple(found)
