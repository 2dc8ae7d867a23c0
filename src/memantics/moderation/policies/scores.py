"""Statistics of decisions under a policy: agreement by clause, confusion, pairs and entropy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import log2
from statistics import fmean

from memantics.core.policy import NO_CLAUSE
from memantics.core.records import Score, Status
from memantics.core.result import Result
from memantics.metrics.agreement import krippendorff_alpha, label_agreement
from memantics.metrics.calibration import conditional_entropy
from memantics.metrics.interval import bootstrap_items, clustered_wilson, wilson
from memantics.metrics.paired import compare_hits
from memantics.metrics.rounding import settle
from memantics.moderation.policies.asking import PolicyMeme, PolicyReply


@dataclass(frozen=True, slots=True)
class PolicyAnswer:
    """The decision of one model on one meme under one policy, with its status."""

    meme: PolicyMeme
    status: Status
    reply: PolicyReply | None = None
    reason: str = ""

    @property
    def clause(self) -> str | None:
        """The deciding clause; None without a decision."""
        return self.reply.clause if self.reply else None


@dataclass(frozen=True, slots=True)
class PolicyRun(Result):
    """The decisions of one model under one policy, with counts, agreement and cost.

    ``agreement`` has the proportions of memes with the gold verdict and with the gold clause, then
    one line per clause. Refused and unparsed replies count as disagreement; failed calls are left
    out. ``entropy`` is the mean conditional entropy of the decision given the explanation, in bits.
    ``flips`` tell how pairs behave; see :class:`ClauseFlips`.
    """

    model: str
    policy: str
    statuses: Mapping[str, int]
    agreement: tuple[Score, ...]
    confusion: tuple[tuple[str, str, int], ...]
    answers: tuple[PolicyAnswer, ...]
    entropy: Score | None = None
    flips: tuple[ClauseFlips, ...] = ()
    tokens_in: int = 0
    tokens_out: int = 0
    cost: float | None = None

    @property
    def name(self) -> str:
        """Model and policy."""
        return f"{self.model}, {self.policy}"


@dataclass(frozen=True, slots=True)
class ClauseFlips:
    """Decisions that changed after one clause was inverted or removed.

    ``own`` are the memes that the model had decided by this clause, ``others`` all other decided
    memes. A flip is another verdict.
    """

    clause: str
    change: str
    own: int
    flipped: int
    others: int
    others_flipped: int

    @property
    def score(self) -> Score:
        """The proportion of flipped decisions among the clause's own memes, with its interval."""
        span = wilson(self.flipped, self.own)
        value = settle(self.flipped / self.own) if self.own else None
        low, high = span or (None, None)
        return Score("flip_rate", value, self.own, low, high, self.change, self.clause)


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """Two runs on the same memes: agreement with gold of the second minus that of the first."""

    kind: str
    first: str
    second: str
    measure: str
    n: int
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True)
class PeopleAgreement:
    """Agreement of annotators: Krippendorff's alpha over all clauses, and pairs by clause."""

    annotators: int
    memes: int
    alpha: float | None
    by_clause: Mapping[str, float]


def measure_agreement(answers: Sequence[PolicyAnswer]) -> tuple[Score, ...]:
    """Measure agreement with the gold verdict and clause, and by gold clause."""
    known = [one for one in answers if one.meme.gold and one.status != "failed"]
    if not known:
        return ()
    found = [
        _rate("verdict_agreement", known, [_same_verdict(one) for one in known]),
        _rate("clause_agreement", known, [one.clause == one.meme.gold for one in known]),
    ]
    clauses = sorted({one.meme.gold for one in known}, key=_rank)
    for clause in clauses:
        own = [one for one in known if one.meme.gold == clause]
        hits = [one.clause == clause for one in own]
        found.append(_rate("clause_agreement", own, hits, clause))
    return tuple(found)


def _rank(clause: str) -> tuple[bool, tuple[int, ...]]:
    if clause == NO_CLAUSE:
        return True, ()
    parts = tuple(int(part) for part in clause.split(".") if part.isdecimal())
    return False, parts


def _same_verdict(answer: PolicyAnswer) -> bool:
    return answer.clause is not None and (answer.clause == NO_CLAUSE) == (
        answer.meme.gold == NO_CLAUSE
    )


def _rate(
    key: str, answers: Sequence[PolicyAnswer], hits: Sequence[bool], clause: str = ""
) -> Score:
    span = clustered_wilson(hits, [one.meme.cluster for one in answers])
    low, high = span or (None, None)
    value = settle(sum(hits) / len(hits))
    return Score(key, value, len(hits), low, high, "clause" if clause else "", clause)


def count_confusion(answers: Sequence[PolicyAnswer]) -> tuple[tuple[str, str, int], ...]:
    """Count pairs of gold clause and decided clause; a missing decision is its status."""
    pairs = Counter((one.meme.gold, one.clause or one.status) for one in answers if one.meme.gold)
    return tuple(
        (gold, said, n)
        for (gold, said), n in sorted(
            pairs.items(), key=lambda pair: (_rank(pair[0][0]), _rank(pair[0][1]), pair[0])
        )
    )


def compare_runs(runs: Sequence[PolicyRun]) -> tuple[PolicyComparison, ...]:
    """Compare policies under one model, and models under one policy, on the same memes."""
    found: list[PolicyComparison] = []
    for first, second in combinations(runs, 2):
        if first.model == second.model:
            kind = "policy"
        elif first.policy == second.policy:
            kind = "model"
        else:
            continue
        found += _compare(kind, first, second)
    return tuple(found)


def _compare(kind: str, first: PolicyRun, second: PolicyRun) -> list[PolicyComparison]:
    pairs = [
        (one, other)
        for one, other in zip(first.answers, second.answers, strict=True)
        if one.meme.gold and "failed" not in (one.status, other.status)
    ]
    made = []
    for measure in ("verdict", "clause"):
        hits = [
            [
                _same_verdict(one) if measure == "verdict" else one.clause == one.meme.gold
                for one in side
            ]
            for side in zip(*pairs, strict=True)
        ]
        clusters = [one.meme.cluster for one, _ in pairs]
        test = compare_hits(hits[0], hits[1], clusters) if pairs else None
        if test is not None:
            values = (settle(value) for value in (test.difference, test.low, test.high, test.p))
            made.append(
                PolicyComparison(kind, first.name, second.name, measure, len(pairs), *values)
            )
    return made


def measure_entropy(samples: Mapping[str, Sequence[str]], decisions: int) -> Score | None:
    """Measure the mean entropy of decisions that were sampled from explanations, in bits.

    ``samples`` are the sampled clauses by meme; ``decisions`` is the number of possible ones.
    """
    rows = {name: list(said) for name, said in samples.items() if said}
    value = conditional_entropy(list(rows.values()))
    if value is None:
        return None
    each = [conditional_entropy([row]) or 0.0 for row in rows.values()]
    span = bootstrap_items(
        list(rows),
        lambda places: fmean(each[place] for place in places),
        bounds=(0.0, log2(decisions)),
    )
    low, high = map(settle, span) if span else (None, None)
    return Score("conditional_entropy", value, len(rows), low, high)


def measure_people(votes: Mapping[str, Sequence[str]]) -> PeopleAgreement | None:
    """Measure the agreement of annotators on the clause; ``votes`` are the clauses by meme."""
    rows = [tuple(said) for said in votes.values() if len(said) > 1]
    if not rows:
        return None
    alpha = krippendorff_alpha(rows)
    found = {str(name): settle(value) for name, value in label_agreement(rows).items()}
    by_clause = dict(sorted(found.items(), key=lambda pair: _rank(pair[0])))
    return PeopleAgreement(
        max(map(len, rows)), len(rows), None if alpha is None else settle(alpha), by_clause
    )
