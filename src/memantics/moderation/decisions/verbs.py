"""Functions behind ``memantics decisions``: verify, appeal, explain, export, summarise."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import median
from typing import Annotated, Literal

from memantics.core.errors import InputError
from memantics.core.files import write_text
from memantics.core.parameters import Argument, Flag
from memantics.core.policy import read_policy
from memantics.core.result import Result, Table
from memantics.metrics.interval import wilson
from memantics.metrics.rounding import settle
from memantics.models.client import CallSettings
from memantics.moderation.decisions.cases import (
    DecisionCase,
    find_case,
    list_cases,
    record_appeal,
    show_time,
)
from memantics.moderation.decisions.dsa import Visibility, write_statements
from memantics.moderation.decisions.explanation import (
    ExplanationModel,
    explain_decision,
    word_explanation,
)
from memantics.moderation.decisions.log import DecisionLog, apply_retention
from memantics.moderation.decisions.reviews import LogFlag, PolicyFlag
from memantics.moderation.decisions.verification import LogFault, find_faults
from memantics.moderation.decisions.webhooks import Delivered, deliver, find_secret, revive
from memantics.web.page import fill_page
from memantics.web.phrases import PageLanguage


@dataclass(frozen=True, slots=True)
class VerifiedLog(Result):
    """The state of a log: its number of lines, its head, and every fault with its line."""

    lines: int
    head: str
    faults: tuple[LogFault, ...]

    @property
    def sound(self) -> bool:
        """Whether the log has no fault."""
        return not self.faults


def verify_decisions(
    database: LogFlag = None,
    *,
    anchor: Annotated[
        str,
        Flag(
            "Head (last line) that an earlier 'decisions verify' printed, as NUMBER:HASH. "
            "Only this finds a log that was rewritten or shortened."
        ),
    ] = "",
) -> VerifiedLog:
    """Find changed, removed and reordered lines of a decision log, and changed stored texts.

    Args:
        database: SQLite file or PostgreSQL URL of the log.
        anchor: Number and hash of a line that was noted earlier; finds a log that was rewritten or
            shortened as a whole.

    Returns:
        The number of lines, the head (empty if there are faults), and each fault with the number
        of its line.

    Raises:
        InputError: There is no log.

    Example:
        >>> mm.verify_decisions("decisions.db").faults
        ()
    """
    number, _, digest = anchor.partition(":")
    if anchor and (not number.isdecimal() or len(digest) != 64):
        raise InputError(f"{anchor[:80]!r} is not a head", hint="write NUMBER:HASH")
    with DecisionLog(database, create=False) as log:
        faults = tuple(find_faults(log, (int(number), digest) if anchor else None))
        return VerifiedLog(log.count(), "" if faults else _show_head(log), faults)


def _show_head(log: DecisionLog) -> str:
    seq, digest = log.head()
    return f"{seq}:{digest}"


def explain_case(
    decision: Annotated[str, Argument("Id of the decision.")],
    database: LogFlag = None,
    *,
    policy: PolicyFlag = None,
    language: Annotated[str, Flag("Language of the author of the post, such as zh.")] = "en",
    model: ExplanationModel = None,
    calls: CallSettings | None = None,
) -> str:
    """Write the explanation of a decision for the author of the post, in the author's language.

    With a model, its text is used only if it has no probability, no address and no words of others;
    else the template is used.

    Args:
        decision: Id of the decision.
        database: SQLite file or PostgreSQL URL of the log.
        policy: Policy file of the decision; it must be that version.
        language: Language of the author of the post.
        model: Model that words the explanation, as ``KIND/NAME``. Default: a template.
        calls: Settings of the model calls; replies are not taken from the cache or kept in it.

    Returns:
        A text without a probability and without data of other people.

    Raises:
        InputError: There is no such decision, or the policy is another version.

    Example:
        >>> recorded = mm.record_reviews("annotations.jsonl", "new.db", policy="policy.md")
        >>> [decision] = recorded.decisions
        >>> "Root vegetables" in mm.explain_case(decision.id, "new.db", policy="policy.md")
        True
    """
    with DecisionLog(database, create=False) as log:
        case = find_case(log, decision)
    read = read_policy(policy) if policy else None
    if read is not None and case.decision.policy_sha256 not in ("", read.digest):
        raise InputError(
            f"the decision was made under {case.decision.policy}, not {read.name}",
            hint="give the file of that version",
        )
    if model is None:
        return explain_decision(case, read, language)
    if read is None:
        raise InputError("--model needs the policy of the decision", hint="add --policy POLICY.md")
    settings = replace(calls or CallSettings(), use_cache=False)
    return word_explanation(case, read, language, model, settings)


def appeal_decision(
    decision: Annotated[str, Argument("Id of the decision.")],
    database: LogFlag = None,
    *,
    statement: Annotated[str, Flag("Statement of the author of the post.")] = "",
    language: Annotated[str, Flag("Language of the author of the post.")] = "",
    keep: Annotated[float | None, Flag("Days for which the statement is kept.", min=0)] = None,
) -> str:
    """Record an appeal against a decision, and return its id.

    Args:
        decision: Id of the decision.
        database: SQLite file or PostgreSQL URL of the log.
        statement: Statement of the author of the post, stored outside the log.
        language: Language of the author of the post.
        keep: Days for which the statement is kept. Default: until it is deleted by hand.

    Returns:
        The id of the appeal.

    Raises:
        InputError: There is no such decision, or it was appealed before.

    Example:
        >>> recorded = mm.record_reviews("annotations.jsonl", "new.db", policy="policy.md")
        >>> [decision] = recorded.decisions
        >>> mm.appeal_decision(decision.id, "new.db", statement="It is art.")[:4]
        'app-'
    """
    with DecisionLog(database, create=False) as log:
        made = record_appeal(log, decision, statement=statement, language=language, keep_days=keep)
    return made.id


@dataclass(frozen=True, slots=True)
class ExportedStatements(Result):
    """The files of an export, each for one call to the database."""

    files: tuple[Path, ...]


def export_decisions(
    out: Annotated[Path, Flag("Folder to write.")],
    database: LogFlag = None,
    *,
    form: Annotated[
        Literal["dsa"],
        Flag("Format: dsa (statements of reasons for the EU's transparency database).", "--format"),
    ] = "dsa",
    policies: Annotated[
        Sequence[Path],
        Flag("Policy file; give one per version that the decisions cite; repeatable.", "--policy"),
    ] = (),
    visibility: Annotated[
        Visibility,
        Flag("Restriction of the posts that break the policy, in the terms of the EU's database."),
    ] = "DECISION_VISIBILITY_CONTENT_REMOVED",
) -> ExportedStatements:
    """Export restricting decisions as statements of reasons, at most 100 per file.

    Decisions that restrict content after an appeal are included, those that were overturned to
    allowed are not.

    Args:
        out: Folder to write.
        database: SQLite file or PostgreSQL URL of the log.
        form: The format: ``dsa``.
        policies: Policy files of all cited versions.
        visibility: Restriction of the content.

    Returns:
        The written files.

    Raises:
        InputError: The file of a cited policy version is missing.

    Example:
        >>> len(mm.export_decisions("dsa", "decisions.db", policies=["policy.md"]).files)
        1
    """
    assert form == "dsa"
    read = {one.digest: one for one in map(read_policy, policies)}
    with DecisionLog(database, create=False) as log:
        cases = list_cases(log)
    return ExportedStatements(tuple(write_statements(cases, read, Path(out), visibility)))


@dataclass(frozen=True, slots=True)
class ClauseDecisions:
    """Decisions that cite one clause: counts, overturn rate with interval, median hours."""

    clause: str
    decisions: int
    automated: int
    appealed: int
    resolved: int
    overturned: int
    rate: float | None
    low: float | None
    high: float | None
    hours: float | None


@dataclass(frozen=True, slots=True)
class DecisionSummary(Result):
    """Decisions by clause, over a whole log; ``hours`` is the median time to the outcome."""

    cases: int
    clauses: tuple[ClauseDecisions, ...]
    first: str = ""
    last: str = ""
    states: Mapping[str, int] = field(default_factory=dict)

    def table(self) -> Table:
        """Show one row per clause."""
        columns = (
            "clause", ">decisions", ">automated", ">appealed", ">overturned",
            ">overturn rate", ">95 % CI", ">hours",
        )  # fmt: skip
        return Table(columns, tuple(map(_show_clause, self.clauses)), f"{self.cases} cases")

    def save(self, out: str | Path, language: PageLanguage = "en") -> Path:
        """Write the page of decisions in English or Chinese."""
        styles = ("page.css", "judges.css")
        page = fill_page("decisions.html", styles, found=self, language=language)
        return write_text(Path(out), page)


def _show_clause(one: ClauseDecisions) -> tuple[str, ...]:
    rate = "–" if one.rate is None else f"{one.rate:.2f}"
    # A column of its own: a terminal of 80 columns breaks a longer cell inside of a number.
    span = "–" if one.rate is None else f"{one.low:.2f}–{one.high:.2f}"
    hours = "–" if one.hours is None else f"{one.hours:.1f}"
    counts = (one.decisions, one.automated, one.appealed, one.overturned)
    return (one.clause, *(f"{n:,}" for n in counts), rate, span, hours)


def summarise_decisions(database: LogFlag = None) -> DecisionSummary:
    """Count decisions by clause, with overturn rates and the time from appeal to outcome.

    Args:
        database: SQLite file or PostgreSQL URL of the log.

    Returns:
        Counts by clause; overturn rates have 95% confidence intervals over resolved appeals.

    Raises:
        StoreError: The log cannot be read.

    Example:
        >>> [(one.clause, one.appealed) for one in mm.summarise_decisions("decisions.db").clauses]
        [('forum@1 1', 1)]
    """
    with DecisionLog(database, create=False) as log:
        cases = list_cases(log)
    by_clause: dict[str, list[DecisionCase]] = defaultdict(list)
    for case in cases:
        label = case.decision.policy.partition("+")[0]
        by_clause[f"{label} {case.decision.clause}".strip()].append(case)
    rows = tuple(_count(name, group) for name, group in sorted(by_clause.items()))
    times = [case.decision.at for case in cases]
    first, last = (show_time(f(times)) for f in (min, max)) if times else ("", "")
    return DecisionSummary(len(cases), rows, first, last, Counter(case.state for case in cases))


def _count(name: str, cases: Sequence[DecisionCase]) -> ClauseDecisions:
    resolved = [case for case in cases if case.outcome is not None]
    overturned = sum(case.state == "overturned" for case in cases)
    low, high = wilson(overturned, len(resolved)) or (None, None)
    waits = [
        (case.outcome.at - case.appeal.at) / 3600
        for case in resolved
        if case.outcome is not None and case.appeal is not None
    ]
    waits = [hours for hours in waits if hours >= 0]  # not if the clock was set back in between
    return ClauseDecisions(
        name,
        len(cases),
        sum(case.decision.automated for case in cases),
        sum(case.appeal is not None for case in cases),
        len(resolved),
        overturned,
        settle(overturned / len(resolved)) if resolved else None,
        None if low is None else settle(low),
        None if high is None else settle(high),
        settle(median(waits), 3) if waits else None,
    )


@dataclass(frozen=True, slots=True)
class Retained(Result):
    """What retention deleted: stored texts, images and statements, log lines; and the new head."""

    contents: int
    lines: int
    head: str = ""


def retain_decisions(
    database: LogFlag = None,
    *,
    keep_lines: Annotated[
        float | None, Flag("Delete log lines older than N days. Default: keep all.", min=1)
    ] = None,
) -> Retained:
    """Delete expired texts and, if asked, old log lines; the rest of the chain stays verifiable.

    Args:
        database: SQLite file or PostgreSQL URL of the log.
        keep_lines: Days for which log lines are kept; cases with an open appeal are kept longer.

    Returns:
        The numbers of deleted contents and lines, and the new head of the log.

    Raises:
        StoreError: The log cannot be written.

    Example:
        >>> mm.retain_decisions("decisions.db", keep_lines=365).lines
        0
    """
    with DecisionLog(database, create=False) as log:
        before = None if keep_lines is None else log.clock() - keep_lines * 86_400
        return Retained(*apply_retention(log, before), _show_head(log))


def deliver_webhooks(
    database: LogFlag = None,
    *,
    again: Annotated[bool, Flag("Also send webhooks again that failed too often.")] = False,
) -> Delivered:
    """Send the webhooks that are due, signed with MEMANTICS_WEBHOOK_SECRET.

    Args:
        database: SQLite file or PostgreSQL URL of the log.
        again: Also send webhooks again that failed too often.

    Returns:
        The numbers of sent, waiting and dead events.

    Raises:
        InputError: The secret is missing.

    Example:
        >>> mm.deliver_webhooks("decisions.db").sent
        0
    """
    secret = find_secret()
    with DecisionLog(database, create=False) as log:
        if again:
            revive(log)
        return deliver(log, secret)
