"""Statements of reasons in the format of the EU's DSA Transparency Database.

The record :class:`StatementOfReasons` is our own schema, written from the public documentation of
the database (https://transparency.dsa.ec.europa.eu/page/api-documentation). It accepts the subset
that this export writes. Statements contain no personal data: no text of a post, no statement of a
poster, no reviewer, and no id by which the platform identifies a person.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, Self

import orjson
from pydantic import AfterValidator, Field, model_validator

from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.policy import EU, Policy
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
    source_type: Literal["SOURCE_VOLUNTARY"] = "SOURCE_VOLUNTARY"
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


def make_statement(
    case: DecisionCase, policies: Mapping[str, Policy], visibility: Visibility
) -> StatementOfReasons:
    """Make the statement of reasons of a restricting decision.

    ``policies`` are the policy versions by hash. Raises InputError if that version is missing.
    """
    decision = case.decision
    policy = policies.get(decision.policy_sha256) if decision.policy_sha256 else None
    if decision.policy_sha256 and policy is None:
        raise InputError(
            f"decision {decision.id} was made under {decision.policy}, which was not given",
            hint="add the file of that version with --policy",
        )
    clause = policy.find(decision.clause) if policy else None
    if clause is not None and policy is not None:
        ground = f"{policy.title}, version {policy.version}, clause {clause.number}: "
        ground = (ground + clause.say_title("en"))[:500]
        explanation = clause.say_rule("en").replace("*", "")[:2000]
        category = next(iter(clause.list_categories("eu")), "OTHER_VIOLATION_TC")
    else:
        ground, explanation = "Automatic detection of harmful content", NO_CLAUSE_NOTE
        category = "OTHER_VIOLATION_TC"
    detected = bool(decision.detector or decision.model)
    level = "FULLY" if decision.automated else "PARTIALLY" if detected else "NOT_AUTOMATED"
    day = datetime.fromtimestamp(decision.at, UTC).date().isoformat()
    language = decision.language.partition("-")[0].upper()
    return StatementOfReasons.model_validate(
        {
            "decision_visibility": [visibility],
            "decision_ground": "DECISION_GROUND_INCOMPATIBLE_CONTENT",
            "incompatible_content_ground": ground,
            "incompatible_content_explanation": explanation,
            "category": _PREFIX + category,
            "content_type": [f"CONTENT_TYPE_{decision.content_type.upper()}"],
            "content_language": language if len(language) == 2 else None,
            "content_date": day,
            "application_date": day,
            "decision_facts": _list_facts(case)[:LONGEST_FACTS],
            "automated_detection": "Yes" if detected else "No",
            "automated_decision": f"AUTOMATED_DECISION_{level}",
            "puid": decision.id,
        }
    )


def _list_facts(case: DecisionCase) -> str:
    """Describe how the decision was made, from closed fields alone."""
    decision = case.decision
    facts = [f"The {decision.content_type} was published on the platform and checked."]
    if decision.detector:
        facts.append("A detector scored it as harmful.")
    if decision.model:
        facts.append("A language model cited the clause.")
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

    Overturned decisions and allowed content have no statement.
    """
    made = [
        make_statement(case, policies, visibility)
        for case in cases
        if case.decision.verdict == "violates"
        and case.decision.band == "block"
        and case.state != "overturned"
    ]
    return list(_write(made, folder))


def _write(made: Sequence[StatementOfReasons], folder: Path) -> Iterator[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    for number, start in enumerate(range(0, len(made), MOST_PER_CALL), 1):
        chosen = made[start : start + MOST_PER_CALL]
        body = {"statements": [one.model_dump(exclude_none=True) for one in chosen]}
        path = folder / f"statements-{number:04d}.json"
        replace_file(path, orjson.dumps(body, option=orjson.OPT_INDENT_2), "statements")
        yield path
