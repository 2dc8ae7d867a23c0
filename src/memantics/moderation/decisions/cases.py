"""Cases: a decision, its appeals and their outcome, as read from the decision log."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.policy import NO_CLAUSE, Clause, Policy
from memantics.core.result import Result
from memantics.core.text import clean_line
from memantics.moderation.decisions.log import (
    DecisionLog,
    LogLine,
    StoredContent,
    new_id,
    store_image,
)

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

DecisionVerdict = Literal["allowed", "violates", "undecided"]
Band = Literal["allow", "review", "block"]
CaseState = Literal["undecided", "decided", "appealed", "upheld", "overturned"]
ContentType = Literal["text", "image"]
NO_CLAUSE_NOTE = "no clause was applied: the detector's score decided"
_LONGEST_STATEMENT = 5000


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision(Result):
    """What happens to a meme: verdict, band, clause, who decided, and when.

    Attributes:
        id: Id of the decision; it cannot be guessed.
        content_sha256: Hash of the content.
        content_id: Id of the content on the platform; empty if not given.
        content_type: ``text`` or ``image``.
        verdict: ``allowed`` or ``violates``; ``undecided`` if a person has to decide.
        band: ``allow``, ``review`` or ``block``.
        clause: Number of the deciding clause; ``none`` if no clause applies.
        policy: Name of the policy version: id, version and hash.
        policy_sha256: Hash of the policy version.
        detector: Detector with its checksum; empty if none was used.
        model: Model that cited the clause; empty if none was used.
        operating_point: Threshold and review range of the detector.
        reviewer: Pseudonym of the person who decided or confirmed; empty: automated.
        role: Role in which that person decided; checked if there is a policy.
        language: Language of the content.
        note: Anything else, such as that no clause was applied.
    """

    id: str = ""
    at: float = 0.0
    content_sha256: str
    content_id: str = ""
    content_type: ContentType = "text"
    verdict: DecisionVerdict
    band: Band
    clause: str = NO_CLAUSE
    policy: str = ""
    policy_sha256: str = ""
    detector: str = ""
    model: str = ""
    operating_point: str = ""
    reviewer: str = ""
    role: str = ""
    language: str = ""
    note: str = ""

    @property
    def automated(self) -> bool:
        """Whether no person decided or confirmed."""
        return not self.reviewer

    def to_body(self) -> dict[str, JsonValue]:
        """Return the body of the log line, without id and time."""
        return {name: value for name, value in asdict(self).items() if name not in ("id", "at")}


@dataclass(frozen=True, slots=True)
class Appeal(Result):
    """An appeal of a post's author against a decision; the statement is stored outside the log."""

    id: str
    decision: str
    at: float
    language: str
    statement_sha256: str


@dataclass(frozen=True, slots=True)
class Outcome(Result):
    """The outcome of an appeal: upheld or overturned, by whom and in which role, which clause.

    ``policy`` and ``policy_sha256`` are the policy version of the review; empty if not given.
    """

    appeal: str
    decision: str
    at: float
    overturned: bool
    clause: str
    reviewer: str
    role: str = ""
    policy: str = ""
    policy_sha256: str = ""


@dataclass(frozen=True, slots=True)
class DecisionCase(Result):
    """A decision with its appeal and outcome, in order of time."""

    decision: Decision
    appeal: Appeal | None = None
    outcome: Outcome | None = None
    text: str | None = field(default=None, compare=False)

    @property
    def state(self) -> CaseState:
        """The state of the case."""
        if self.outcome is not None:
            return "overturned" if self.outcome.overturned else "upheld"
        if self.appeal is not None:
            return "appealed"
        return "undecided" if self.decision.verdict == "undecided" else "decided"

    @property
    def verdict(self) -> DecisionVerdict:
        """The verdict that holds now: that of the decision, or the opposite if overturned."""
        if self.state != "overturned":
            return self.decision.verdict
        return "allowed" if self.decision.verdict == "violates" else "violates"

    @property
    def restricted_by_appeal(self) -> bool:
        """Whether the content was allowed first, and violates the policy after an appeal."""
        return self.state == "overturned" and self.verdict == "violates"

    @property
    def deciders(self) -> tuple[str, ...]:
        """The people who have decided on this case."""
        people = (self.decision.reviewer, self.outcome.reviewer if self.outcome else "")
        return tuple(filter(None, people))


def hash_content(content: str | bytes) -> str:
    """Return the SHA-256 of a text or an image."""
    data = content.encode("utf-8", "replace") if isinstance(content, str) else content
    return hashlib.sha256(data).hexdigest()


def check_clause(decision: Decision, policy: Policy) -> None:
    """Raise InputError if the clause is not in the policy, or contradicts the verdict."""
    cited = need_clause(decision.clause, policy)
    if decision.verdict == "allowed" and cited is not None:
        raise InputError(
            f"the verdict is 'allowed', but clause {decision.clause} is cited", hint="use 'none'"
        )


def need_clause(number: str, policy: Policy) -> Clause | None:
    """Return a clause of a policy, None for ``none``; raise InputError if it does not exist."""
    cited = policy.find(number)
    if number != NO_CLAUSE and cited is None:
        raise InputError(
            f"{number[:20]!r} is not a clause of {policy.name}",
            hint=f"use {', '.join(one.number for one in policy.clauses)} or {NO_CLAUSE}",
        )
    return cited


class KnownDecisions:
    """The contents on which a log has a decision, by policy version and by whether it is automated.

    They are read inside the write transaction. So a command that is repeated after a kill, or runs
    twice at once, records each content once.
    """

    def __init__(self, log: DecisionLog) -> None:
        self._log, self._through = log, 0
        self._keys: set[tuple[str | bool, ...]] = set()

    def includes(self, connection: Connection, decision: Decision) -> bool:
        """Read the lines that are new, and return whether the content has a decision."""
        for line in self._log.walk_after(connection, self._through):
            self._through = line.seq
            if line.kind == "decided":
                self._keys.add(_identify_content(_read_decision(line)))
        return _identify_content(decision) in self._keys


def _identify_content(decision: Decision) -> tuple[str | bool, ...]:
    """Return content and policy version; an automated decision does not replace a review."""
    key = (decision.content_sha256, decision.content_id, decision.policy_sha256)
    return (*key, decision.automated)


@dataclass(frozen=True, slots=True)
class KeptContent:
    """What is stored of a decided content: its text, its image, and the days for which it is kept.

    Nothing is stored by default. Without days, a content is kept until its line is deleted.
    """

    text: str | None = None
    text_days: float | None = None
    image: bytes | None = None
    image_days: float | None = None


def record_decision(
    log: DecisionLog, decision: Decision, *, text: str | None = None, keep_days: float | None = None
) -> Decision:
    """Append a decision to the log and return it with its id and time.

    When this function returns, the decision is on disk. ``text`` is stored outside the log, and
    deleted after ``keep_days``.
    """
    made, contents = _prepare(log, decision, KeptContent(text, keep_days))
    with log.write() as connection:
        return _append(log, connection, made, contents)


def record_new_decision(
    log: DecisionLog,
    decision: Decision,
    known: KnownDecisions,
    kept: KeptContent,
) -> Decision | None:
    """Append a decision as :func:`record_decision` does; None if its content has one already."""
    made, contents = _prepare(log, decision, kept)
    with log.write() as connection:
        if known.includes(connection, made):
            return None
        return _append(log, connection, made, contents)


def _prepare(
    log: DecisionLog, decision: Decision, kept: KeptContent
) -> tuple[Decision, list[StoredContent]]:
    made = replace(decision, id=new_id("dec"))
    contents = []
    if kept.text is not None:
        if decision.content_type == "text" and hash_content(kept.text) != decision.content_sha256:
            raise InputError(
                "the text does not have the hash that is given as the content's",
                hint="hash the text",
            )
        contents.append(StoredContent(made.id, kept.text, _find_end(log, kept.text_days)))
    if kept.image is not None:
        if hash_content(kept.image) != decision.content_sha256:
            raise InputError(
                "the image does not have the hash that is given as the content's",
                hint="hash the image file",
            )
        contents.append(store_image(made.id, kept.image, _find_end(log, kept.image_days)))
    return made, contents


def _find_end(log: DecisionLog, days: float | None) -> float | None:
    return None if days is None else log.clock() + days * 86_400


def _append(
    log: DecisionLog, connection: Connection, made: Decision, contents: Sequence[StoredContent]
) -> Decision:
    body = made.to_body()
    line = log.add(connection, "decided", made.id, body, contents=contents, event="decided")
    return replace(made, at=line.at)


def record_appeal(
    log: DecisionLog,
    decision: str,
    *,
    statement: str = "",
    language: str = "",
    keep_days: float | None = None,
) -> Appeal:
    """Append an appeal against a decision, with the statement of the author of the post.

    Raises:
        InputError: There is no such decision, nothing is decided, or it has been appealed already.
    """
    said = statement[:_LONGEST_STATEMENT]
    body: dict[str, JsonValue] = {
        "appeal": new_id("app"),
        "language": clean_line(language, 20),
        "statement_sha256": hash_content(said),
    }
    stored = StoredContent(str(body["appeal"]), said, _find_end(log, keep_days))
    contents = [stored] if said else []
    with log.write() as connection:
        case = build_case(log.walk_in(connection, decision))
        if case is None:
            raise InputError(f"no decision {decision[:80]!r}", hint="check the id")
        if case.decision.verdict == "undecided":
            raise InputError(
                "nothing is decided yet: a person has to review the post",
                hint="appeal against the decision of that person",
            )
        if case.appeal is not None:
            raise InputError("the decision has been appealed already", hint="wait for the outcome")
        line = log.add(connection, "appealed", decision, body, contents=contents)
    made = _read_appeal(line)
    assert made is not None
    return made


def record_outcome(
    log: DecisionLog,
    decision: str,
    *,
    clause: str,
    reviewer: str,
    role: str = "",
    policy: Policy | None = None,
) -> Outcome:
    """Append the outcome of an appeal.

    The decision is upheld if the reviewer's verdict is the same; else it is overturned. ``policy``
    is the version whose clause the reviewer cited.

    Raises:
        InputError: There is no open appeal, or the reviewer decided on this case before.
    """
    with log.write() as connection:
        case = build_case(log.walk_in(connection, decision))
        if case is None or case.appeal is None or case.outcome is not None:
            raise InputError(f"{decision[:80]!r} has no open appeal", hint="check the id")
        if reviewer in case.deciders or not reviewer:
            raise InputError(
                f"reviewer {reviewer!r} decided on this case before",
                hint="let another person review the appeal",
            )
        violates = clause != NO_CLAUSE
        overturned = violates != (case.decision.verdict == "violates")
        body: dict[str, JsonValue] = {
            "appeal": case.appeal.id,
            "clause": clause,
            "reviewer": reviewer,
            "role": role,
        }
        if policy is not None:
            body |= {"policy": policy.name, "policy_sha256": policy.digest}
        kind: Literal["upheld", "overturned"] = "overturned" if overturned else "upheld"
        event = "overturned" if overturned else ""
        line = log.add(connection, kind, decision, body, event=event)
    return _read_outcome(line)


def build_case(lines: Iterable[LogLine]) -> DecisionCase | None:
    """Build a case from the lines of one decision; None without a decision."""
    case: DecisionCase | None = None
    for line in lines:
        if line.kind == "decided":
            case = DecisionCase(_read_decision(line))
        elif case is not None and line.kind == "appealed":
            case = replace(case, appeal=_read_appeal(line))
        elif case is not None and line.kind in ("upheld", "overturned"):
            case = replace(case, outcome=_read_outcome(line))
    return case


def _read_decision(line: LogLine) -> Decision:
    known = {name: line.body[name] for name in Decision.__dataclass_fields__ if name in line.body}
    return Decision(**{**known, "id": line.case, "at": line.at})  # type: ignore[arg-type]


def _read_appeal(line: LogLine) -> Appeal:
    said = {name: str(line.body.get(name, "")) for name in ("language", "statement_sha256")}
    return Appeal(str(line.body["appeal"]), line.case, line.at, **said)


def _read_outcome(line: LogLine) -> Outcome:
    return Outcome(
        str(line.body.get("appeal", "")),
        line.case,
        line.at,
        line.kind == "overturned",
        str(line.body.get("clause", NO_CLAUSE)),
        str(line.body.get("reviewer", "")),
        str(line.body.get("role", "")),
        str(line.body.get("policy", "")),
        str(line.body.get("policy_sha256", "")),
    )


def find_case(log: DecisionLog, decision: str) -> DecisionCase:
    """Return one case; raise InputError for an unknown id."""
    case = build_case(log.walk(decision))
    if case is None:
        raise InputError(f"no decision {decision[:80]!r}", hint="check the id")
    return replace(case, text=log.read_content(decision))


def list_cases(log: DecisionLog) -> list[DecisionCase]:
    """Return all cases in order of their decisions."""
    lines: dict[str, list[LogLine]] = {}
    for line in log.walk():
        lines.setdefault(line.case, []).append(line)
    return [case for group in lines.values() if (case := build_case(group)) is not None]


def list_open_appeals(log: DecisionLog) -> Iterator[DecisionCase]:
    """Yield the cases whose appeal has no outcome."""
    for case in list_cases(log):
        if case.state == "appealed":
            yield replace(case, text=log.read_content(case.decision.id))


def show_time(at: float) -> str:
    """Return a time as ISO 8601 in UTC.

    >>> show_time(0)
    '1970-01-01T00:00:00+00:00'
    """
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
