"""Statements of reasons in the format of the EU's DSA Transparency Database.

The record :class:`StatementOfReasons` is our own schema, written from the public documentation of
the database (https://transparency.dsa.ec.europa.eu/page/api-documentation). It accepts the subset
that this export writes. Statements contain no personal data: no text of a post, no statement of a
poster, no reviewer, and no id by which the platform identifies a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import orjson
from pydantic import AfterValidator, Field, model_validator

from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.policy import EU, NO_CLAUSE, Clause, Policy
from memantics.core.records import Closed
from memantics.moderation.decisions.cases import NO_CLAUSE_NOTE, DecisionCase

MOST_PER_CALL = 100
LONGEST_FACTS = 5000
_PREFIX = "STATEMENT_CATEGORY_"
_COUNTRIES = frozenset(
    {
        *("AT", "BE", "BG", "CY", "CZ", "DE", "DK", "EE", "ES", "FI", "FR", "GR", "HR", "HU", "IE"),
        *("IS", "IT", "LI", "LT", "LU", "LV", "MT", "NL", "NO", "PL", "PT", "RO", "SE", "SI", "SK"),
    }
)
_REVIEWED = "A reviewer decided that the content is harmful; no clause of a policy was applied"
_LANGUAGE = re.compile(r"[A-Z]{2}")
_REMOVED = "[removed]"  # in place of an address or number that a policy contains
_PERSONAL = re.compile(r"\S+@\S+\.\S+|\+\d[\d ()/-]{7,}\d")


def _check_country(code: str) -> str:
    if code not in _COUNTRIES:
        raise ValueError(f"{code!r} is not a country of the European Economic Area")
    return code


def _check_category(name: str) -> str:
    if name.removeprefix(_PREFIX) not in EU or not name.startswith(_PREFIX):
        raise ValueError(f"{name!r} is not a category of the database")
    return name


Day = Annotated[str, Field(pattern=r"^\d{4}-\d{2}-\d{2}$")]
Visibility = Literal[
    "DECISION_VISIBILITY_CONTENT_REMOVED",
    "DECISION_VISIBILITY_CONTENT_DISABLED",
    "DECISION_VISIBILITY_CONTENT_DEMOTED",
    "DECISION_VISIBILITY_CONTENT_AGE_RESTRICTED",
    "DECISION_VISIBILITY_CONTENT_INTERACTION_RESTRICTED",
    "DECISION_VISIBILITY_CONTENT_LABELLED",
]
EuContent = Literal["CONTENT_TYPE_TEXT", "CONTENT_TYPE_IMAGE"]


class StatementOfReasons(Closed):
    """One statement of reasons for a restriction of content that breaks a policy."""

    decision_visibility: Annotated[list[Visibility], Field(min_length=1)]
    decision_ground: Literal["DECISION_GROUND_INCOMPATIBLE_CONTENT"]
    incompatible_content_ground: Annotated[str, Field(min_length=1, max_length=500)]
    incompatible_content_explanation: Annotated[str, Field(min_length=1, max_length=2000)]
    incompatible_content_illegal: Literal["Yes", "No"] = "No"
    category: Annotated[str, AfterValidator(_check_category)]
    content_type: Annotated[list[EuContent], Field(min_length=1)]
    content_language: Annotated[str, Field(pattern=r"^[A-Z]{2}$")] | None = None
    content_date: Day
    application_date: Day
    decision_facts: Annotated[str, Field(min_length=1, max_length=LONGEST_FACTS)]
    source_type: Literal["SOURCE_VOLUNTARY", "SOURCE_TYPE_OTHER_NOTIFICATION"] = "SOURCE_VOLUNTARY"
    automated_detection: Literal["Yes", "No"]
    automated_decision: Literal[
        "AUTOMATED_DECISION_FULLY",
        "AUTOMATED_DECISION_PARTIALLY",
        "AUTOMATED_DECISION_NOT_AUTOMATED",
    ]
    territorial_scope: tuple[Annotated[str, AfterValidator(_check_country)], ...] = ()
    puid: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,500}$")]

    @model_validator(mode="after")
    def _check(self) -> Self:
        texts = (
            self.decision_facts,
            self.incompatible_content_explanation,
            self.incompatible_content_ground,
        )
        if any(_PERSONAL.search(text) for text in texts):
            raise ValueError("a text contains an e-mail address or a telephone number")
        if self.content_date > self.application_date:
            raise ValueError("content_date is after application_date")
        return self


@dataclass(frozen=True, slots=True)
class _Ground:
    """What a restriction rests on: a clause of a policy, the number of a clause, or neither."""

    policy: Policy | None = None
    clause: Clause | None = None
    number: str = NO_CLAUSE

    def describe(self, automated: bool) -> tuple[str, str, str]:
        """Return ground, explanation and category of the statement."""
        if self.clause is None and self.number != NO_CLAUSE:
            ground = f"Clause {self.number} of the policy of the platform"
            return ground, f"The content breaks clause {self.number}.", "OTHER_VIOLATION_TC"
        if self.clause is None or self.policy is None:
            ground = "Automatic detection of harmful content" if automated else _REVIEWED
            return ground, NO_CLAUSE_NOTE if automated else _REVIEWED, "OTHER_VIOLATION_TC"
        ground = f"{self.policy.title}, version {self.policy.version}, clause {self.clause.number}"
        ground = f"{ground}: {self.clause.say_title('en')}"[:500]
        category = next(iter(self.clause.list_categories("eu")), "OTHER_VIOLATION_TC")
        return ground, self.clause.say_rule("en").replace("*", "")[:2000], category


def _find_ground(case: DecisionCase, policies: Mapping[str, Policy]) -> _Ground:
    """Find the clause that holds now: the one of the outcome of an appeal, else the decision's."""
    decision, outcome = case.decision, case.outcome
    cited = [(decision.policy, decision.policy_sha256, decision.clause)]
    if outcome is not None and outcome.clause != NO_CLAUSE:
        named = (outcome.policy or decision.policy, outcome.policy_sha256, outcome.clause)
        cited.insert(0, (named[0], named[1] or decision.policy_sha256, named[2]))
    for name, digest, number in cited:
        policy = policies.get(digest) if digest else None
        if digest and policy is None:
            raise InputError(
                f"decision {decision.id} was made under {name}, which was not given",
                hint="add the file of that version with --policy",
            )
        clause = policy.find(number) if policy else None
        if clause is not None:
            return _Ground(policy, clause, number)
    return _Ground(number=cited[0][2])


def make_statement(
    case: DecisionCase, policies: Mapping[str, Policy], visibility: Visibility
) -> StatementOfReasons:
    """Make the statement of reasons of a restricting decision, also of one after an appeal.

    A content that was allowed first and is restricted after an appeal was notified by the person
    who appealed, and a reviewer decided. It counts as detected automatically only if the first
    decision was a review of what a detector or model had flagged.

    ``policies`` are the policy versions by hash. Raises InputError if that version is missing.
    """
    decision, appealed = case.decision, case.restricted_by_appeal
    automated = decision.automated and not appealed
    ground, explanation, category = _find_ground(case, policies).describe(automated)
    detected = _is_detected(case)
    level = "FULLY" if automated else "PARTIALLY" if detected else "NOT_AUTOMATED"
    decided_at = case.outcome.at if appealed and case.outcome is not None else decision.at
    decided_at = max(decided_at, decision.at)  # a clock may have been set back
    language = decision.language.partition("-")[0].upper()
    return StatementOfReasons.model_validate(
        {
            "decision_visibility": [visibility],
            "decision_ground": "DECISION_GROUND_INCOMPATIBLE_CONTENT",
            "incompatible_content_ground": _PERSONAL.sub(_REMOVED, ground),
            "incompatible_content_explanation": _PERSONAL.sub(_REMOVED, explanation),
            "category": _PREFIX + category,
            "content_type": [f"CONTENT_TYPE_{decision.content_type.upper()}"],
            "content_language": language if _LANGUAGE.fullmatch(language) else None,
            "content_date": _show_day(decision.at),
            "application_date": _show_day(decided_at),
            "decision_facts": _list_facts(case)[:LONGEST_FACTS],
            "source_type": "SOURCE_TYPE_OTHER_NOTIFICATION" if appealed else "SOURCE_VOLUNTARY",
            "automated_detection": "Yes" if detected else "No",
            "automated_decision": f"AUTOMATED_DECISION_{level}",
            "puid": decision.id,
        }
    )


def _show_day(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).date().isoformat()


def _is_detected(case: DecisionCase) -> bool:
    """Whether a detector or model flagged the content; one that allowed it did not."""
    decision = case.decision
    if decision.automated and decision.verdict == "allowed":
        return False
    return bool(decision.detector or decision.model)


def _list_facts(case: DecisionCase) -> str:
    """Describe how the decision was made, from closed fields alone."""
    decision = case.decision
    facts = [f"The {decision.content_type} was published on the platform and checked."]
    if _is_detected(case):
        facts += ["A detector scored it as harmful."] if decision.detector else []
        facts += ["A language model cited the clause."] if decision.model else []
    if case.restricted_by_appeal:
        first = "Automatic means" if decision.automated else "A reviewer"
        facts.append(f"{first} allowed it at first.")
        facts.append("After an appeal, another reviewer decided that it breaks the policy.")
        return " ".join(facts)
    if decision.reviewer:
        facts.append("A reviewer made or confirmed the decision.")
    if case.state == "upheld":
        facts.append("The poster appealed; another reviewer upheld the decision.")
    return " ".join(facts)


def write_statements(
    cases: Sequence[DecisionCase],
    policies: Mapping[str, Policy],
    folder: Path,
    visibility: Visibility = "DECISION_VISIBILITY_CONTENT_REMOVED",
) -> list[Path]:
    """Write the statements of restricting decisions as files of at most 100, one per call.

    Content that is allowed now has no statement: it was allowed, or its restriction was overturned
    after an appeal or by a later decision of a person. Content that is restricted after an appeal
    has one.
    """
    made = [
        make_statement(case, policies, visibility)
        for case in _drop_replaced(cases)
        if case.verdict == "violates"
    ]
    return list(_write(made, folder))


def _drop_replaced(cases: Sequence[DecisionCase]) -> Iterator[DecisionCase]:
    """Yield the case of each content that counts: the last one, but people count before models.

    Contents without an id are not compared: equal texts may be different posts.
    """
    last: dict[tuple[str, str], str] = {}
    people: set[tuple[str, str]] = set()
    for case in cases:
        decision = case.decision
        key = (decision.content_id, decision.content_sha256)
        by_person = not decision.automated or case.outcome is not None
        if decision.verdict == "undecided" or (key in people and not by_person):
            continue
        last[key] = decision.id
        people |= {key} if by_person else set()
    for case in cases:
        key = (case.decision.content_id, case.decision.content_sha256)
        if not case.decision.content_id or last.get(key) == case.decision.id:
            yield case


def _write(made: Sequence[StatementOfReasons], folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(made), MOST_PER_CALL), 1):
        chosen = made[start : start + MOST_PER_CALL]
        body = {"statements": [one.model_dump(exclude_none=True) for one in chosen]}
        path = folder / f"statements-{number:04d}.json"
        replace_file(path, orjson.dumps(body, option=orjson.OPT_INDENT_2), "statements")
        yield path
