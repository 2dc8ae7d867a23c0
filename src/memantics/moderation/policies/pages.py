"""The page of ``policy test``: agreement by clause, confusion, comparisons and disagreements."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from memantics.core.files import write_text
from memantics.core.policy import NO_CLAUSE
from memantics.core.records import STATUSES, Score, format_value, show_span
from memantics.core.result import Result, Table
from memantics.moderation.policies.asking import PolicyMeme
from memantics.moderation.policies.scores import PeopleAgreement, PolicyComparison, PolicyRun
from memantics.web.page import fill_page
from memantics.web.phrases import PageLanguage, read_phrases

_CELLS = """table { overflow-wrap: normal; }
table.judges td.long { min-width: 13rem; overflow-wrap: anywhere; }
table.judges thead th { white-space: normal; }
table.judges thead th { vertical-align: bottom; }
"""
STYLES = ("page.css", "screening.css", "judges.css", _CELLS)
_MOST = 100  # shown disagreements
_NOTHING = "–"  # not measured


@dataclass(frozen=True, slots=True)
class PolicyTest(Result):
    """The result of ``policy test``: one run per model and policy, and their comparisons."""

    data: str
    memes: int
    gold: int
    runs: tuple[PolicyRun, ...]
    comparisons: tuple[PolicyComparison, ...]
    people: PeopleAgreement | None = None
    folder: Path = field(default=Path())
    unseen: int = 0  # memes without their image file, which were decided by their text

    @property
    def statuses(self) -> Mapping[str, int]:
        """The number of memes by status, over all runs."""
        return sum((Counter(run.statuses) for run in self.runs), Counter())

    def table(self) -> Table:
        """Show one row per run: statuses and agreement; entropy and cost if they were measured.

        The hash of a policy is shown only where two policies have the same name and version.
        """
        columns = ("model", "policy", ">statuses", ">verdict", ">clause", ">entropy", ">cost")
        hashes = {run.policy for run in self.runs}
        short = len({one.partition("+")[0] for one in hashes}) == len(hashes)
        rows = [_show_run(run, short) for run in self.runs]
        kept = [
            place
            for place, _ in enumerate(columns)
            if place < columns.index(">entropy") or any(row[place] != _NOTHING for row in rows)
        ]
        counts = f"{self.memes} memes, {self.gold} with gold"
        title = f"{self.data}: {counts}; statuses: {'/'.join(STATUSES)}"
        cells = tuple(tuple(row[place] for place in kept) for row in rows)
        return Table(tuple(columns[place] for place in kept), cells, title)

    def save(self, out: str | Path, language: PageLanguage = "en") -> Path:
        """Write the page of the test in English or Chinese."""
        return write_policy_test(self, Path(out), language)


def _show_run(run: PolicyRun, short: bool) -> tuple[str, ...]:
    """Return the cells of a run; the statuses are answered, refused, unparsed and failed."""
    scores = {(one.key, one.label): one for one in run.agreement}
    shown = (scores.get((f"{name}_agreement", "")) for name in ("verdict", "clause"))
    return (
        run.model,
        run.policy[: run.policy.index("+") + (0 if short else 7)],
        "/".join(str(run.statuses.get(name, 0)) for name in STATUSES),
        *(_show(one) for one in shown),
        _show(run.entropy),
        _NOTHING if run.cost is None else f"{run.cost:.4f}",
    )


def _show(score: Score | None) -> str:
    if score is None:
        return _NOTHING
    return (
        f"{format_value(score.value)} ({show_span(score)})"
        if score.interval
        else format_value(score.value)
    )


@dataclass(frozen=True, slots=True)
class ConfusionTable:
    """Gold clauses by decided clauses, with counts."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[int, ...]], ...]


@dataclass(frozen=True, slots=True)
class PolicyDisagreement:
    """A meme on which runs differ from each other or from gold; one decision per run."""

    meme: PolicyMeme
    said: tuple[tuple[str, str], ...]


def make_confusion(run: PolicyRun) -> ConfusionTable:
    """Arrange the confusion of a run as a table."""
    columns = dict.fromkeys(said for _, said, _ in run.confusion)
    ordered = sorted(columns, key=lambda name: (not name[:1].isdigit(), name == NO_CLAUSE, name))
    rows = []
    for gold, group in groupby(run.confusion, key=lambda entry: entry[0]):
        counts = {said: n for _, said, n in group}
        rows.append((gold, tuple(counts.get(name, 0) for name in ordered)))
    return ConfusionTable(tuple(ordered), tuple(rows))


def list_disagreements(found: PolicyTest) -> Iterator[PolicyDisagreement]:
    """Yield memes on which a run differs from gold, or from another run."""
    for answers in zip(*(run.answers for run in found.runs), strict=True):
        meme = answers[0].meme
        clauses = {one.clause or one.status for one in answers}
        if len(clauses) > 1 or (meme.gold and clauses != {meme.gold}):
            said = tuple(
                (one.clause or one.status, one.reply.explanation if one.reply else one.reason)
                for one in answers
            )
            yield PolicyDisagreement(meme, said)


def show_score(score: Score | None, say: Callable[[str], str] = str) -> str:
    """Format a score with its interval and n."""
    if score is None:
        return "–"
    span = f" ({say(show_span(score))})" if score.interval else ""
    return f"{format_value(score.value)}{span}, n = {score.n}"


def write_policy_test(found: PolicyTest, out: Path, language: PageLanguage = "en") -> Path:
    """Write the page of a policy test."""
    differ = list(list_disagreements(found))
    say = read_phrases(language).say
    said = {name: say(name) for name in (NO_CLAUSE, *STATUSES)}
    values: dict[str, Any] = {
        "found": found,
        "tables": [(run, make_confusion(run)) for run in found.runs],
        "clauses": list(
            dict.fromkeys(one.label for run in found.runs for one in run.agreement if one.label)
        ),
        "scores": [{(one.key, one.label): one for one in run.agreement} for run in found.runs],
        "differ": differ[:_MOST],
        "total": len(differ),
        "data": Path(found.data).name,
        "show_score": lambda score: show_score(score, say),
        "name_clause": lambda name: said.get(name, name),
        "language": language,
    }
    return write_text(out, fill_page("policy_test.html", STYLES, **values))
