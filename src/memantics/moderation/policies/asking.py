"""Questions to a model under a policy, and the decisions that it replies."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from pydantic import Field as Limit
from pydantic import JsonValue

from memantics.core.model import Step
from memantics.core.policy import NO_CLAUSE, Clause, Policy, PolicyExample
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Form, Image, Lenient, Message, Request, Sampling
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.core.waiting import run_sync
from memantics.models import drafts
from memantics.models.client import CallSettings, open_client

PolicyVerdict = Literal["allowed", "violates"]
ALLOWED, VIOLATES = "allowed", "violates"
LONGEST_EXPLANATION = 1500
_EXAMPLES = 12  # examples per clause and kind in a prompt
find_prompts = prompts_beside(__file__)


@dataclass(frozen=True, slots=True)
class PolicyMeme:
    """A meme to decide: its text and image, and the gold clause (``none``: allowed)."""

    id: str
    text: str = ""
    image: Path | None = None
    language: str = ""
    gold: str = ""
    group: str = ""

    @property
    def cluster(self) -> str:
        """The meme behind a case; intervals are clustered by it."""
        return self.group or self.id


@dataclass(frozen=True, slots=True)
class PolicyReply:
    """A decision of a model: verdict, deciding clause and explanation."""

    verdict: PolicyVerdict
    clause: str
    explanation: str = ""


class _Said(Lenient):
    verdict: PolicyVerdict
    clause: str = Limit(max_length=20)
    explanation: str = Limit(default="", max_length=20_000)


def read_decision(reply: str, policy: Policy) -> PolicyReply:
    """Parse a decision; reject a clause that the policy does not have.

    Raises:
        Unparsed: The reply holds no decision, or verdict and clause contradict each other.
    """
    said = read_object(reply, _Said)
    number = said.clause.strip().removeprefix("Clause").removeprefix("clause").strip().rstrip(".")
    if said.verdict == ALLOWED and number.casefold() != NO_CLAUSE:
        raise Unparsed(f"the verdict is 'allowed', but the clause is {number[:20]!r}: use 'none'")
    if said.verdict == VIOLATES and policy.find(number) is None:
        known = ", ".join(clause.number for clause in policy.clauses)
        raise Unparsed(f"{number[:20]!r} is not a clause: use one of {known}")
    number = NO_CLAUSE if said.verdict == ALLOWED else number
    return PolicyReply(said.verdict, number, clean_line(said.explanation, LONGEST_EXPLANATION))


def show_to_model(policy: Policy, language: str = "") -> str:
    """Write a policy as the text of a prompt; examples by meme id are left out."""
    language = language or policy.language
    lines = [f"Policy: {policy.title}"]
    lines += [policy.introduction] if policy.introduction else []
    if policy.terms:
        lines += ["Terms:", *(f"- {name}: {text}" for name, text in policy.terms.items())]
    for clause in policy.clauses:
        lines += ["", *_show_clause(clause, language)]
    return enclose("policy", "\n".join(lines))


def _show_clause(clause: Clause, language: str) -> list[str]:
    lines = [f"Clause {clause.number}: {clause.say_title(language)}"]
    lines += [f"Severity: {clause.severity}", f"Rule: {clause.say_rule(language)}"]
    if allowed := clause.say_allowed(language):
        lines += ["Allowed:", *(f"- {text}" for text in allowed)]
    for heading, examples in (
        ("Memes that break it", clause.examples),
        ("Memes that do not break it", clause.counter_examples),
    ):
        texts = [one.value for one in examples if one.kind == "text"][:_EXAMPLES]
        if texts:
            lines += [f"{heading}:", *(f"- {clean_line(text, 300)}" for text in texts)]
    return lines


def make_decision_step(
    policy: Policy, meme: PolicyMeme, *, attempts: int = 2, name: str = "decide"
) -> Step[PolicyReply]:
    """Build the step that asks a model for the decision on a meme.

    An example of the policy with the text of the meme is left out of the prompt.
    """
    policy, language = hide_example(policy, meme.text), policy.language
    shown = enclose("meme text", meme.text) if meme.text.strip() else "The text is in the image."
    body = find_prompts()["decide"].fill(
        policy=show_to_model(policy, language),
        meme=shown,
        language=drafts.name_language(language),
    )
    numbers = [clause.number for clause in policy.clauses]
    schema = drafts.record(
        explanation=drafts.text(LONGEST_EXPLANATION),
        verdict=drafts.choice(ALLOWED, VIOLATES),
        clause=drafts.choice(*numbers, NO_CLAUSE),
    )
    parts = (*((Image(meme.image),) if meme.image else ()), body)
    return Step(
        f"{meme.id}/{name}",
        _ask(parts, schema, language),
        lambda reply: read_decision(reply, policy),
        attempts,
    )


def make_sample_step(
    policy: Policy, meme: PolicyMeme, explanation: str, number: int
) -> Step[PolicyReply]:
    """Build the step that samples a decision from an explanation alone."""
    listed = "\n".join(f"{one.number} {one.say_title('')}" for one in policy.clauses)
    body = find_prompts()["from_explanation"].fill(
        clauses=listed, explanation=enclose("explanation", explanation)
    )
    numbers = [clause.number for clause in policy.clauses]
    schema = drafts.record(
        verdict=drafts.choice(ALLOWED, VIOLATES), clause=drafts.choice(*numbers, NO_CLAUSE)
    )
    request = _ask((body,), schema, policy.language)
    request = replace(request, sampling=Sampling(temperature=1.0, seed=number))
    return Step(
        f"{meme.id}/sample-{number}", request, lambda reply: read_decision(reply, policy), 1
    )


def _ask(parts: Sequence[str | Image], schema: Mapping[str, JsonValue], language: str) -> Request:
    message = Message("user", tuple(parts))
    return Request((message,), Form("", (), language, "json"), Sampling(), schema)


def invert_clause(policy: Policy, number: str) -> Policy:
    """Return the policy with one clause inverted: it allows what it forbade.

    Its examples become counter-examples, and the other way round.
    """
    rule = "This is explicitly allowed, whatever another clause says: memes to which this applied: "
    return _change(
        policy,
        number,
        lambda clause: replace(
            clause,
            rule={name: f"{rule}{text}" for name, text in clause.rule.items()},
            allowed={},
            examples=clause.counter_examples,
            counter_examples=clause.examples,
        ),
    )


def remove_clause(policy: Policy, number: str) -> Policy:
    """Return the policy without one clause; its only clause is not removed.

    The numbers of the other clauses stay.
    """
    kept = tuple(clause for clause in policy.clauses if clause.number != number)
    return replace(policy, clauses=kept) if kept else policy


def _change(policy: Policy, number: str, change: Callable[[Clause], Clause]) -> Policy:
    clauses = tuple(change(one) if one.number == number else one for one in policy.clauses)
    return replace(policy, clauses=clauses)


def hide_example(policy: Policy, text: str) -> Policy:
    """Return the policy without the examples of one text, so that a model cannot look it up."""

    def keep(examples: tuple[PolicyExample, ...]) -> tuple[PolicyExample, ...]:
        return tuple(one for one in examples if one.kind != "text" or one.value != text)

    clauses = tuple(
        replace(one, examples=keep(one.examples), counter_examples=keep(one.counter_examples))
        for one in policy.clauses
    )
    return replace(policy, clauses=clauses)


def list_own_memes(policy: Policy) -> list[PolicyMeme]:
    """Return the text examples and counter-examples of a policy as memes with their clause."""
    found: list[PolicyMeme] = []
    for clause in policy.clauses:
        for kind, examples, gold in (
            ("example", clause.examples, clause.number),
            ("counter-example", clause.counter_examples, NO_CLAUSE),
        ):
            found += [
                PolicyMeme(f"clause-{clause.number}-{kind}-{place}", one.value, gold=gold)
                for place, one in enumerate(_list_texts(examples), 1)
            ]
    return found


def _list_texts(examples: Sequence[PolicyExample]) -> list[PolicyExample]:
    return [one for one in examples if one.kind == "text"]


def decide_by_policy(
    policy: Policy, text: str, model: str, calls: CallSettings, folder: Path, name: str
) -> PolicyReply | None:
    """Let a model decide on one text; None if it refuses or gives no valid reply.

    Each call has its own folder below ``folder``, so that parallel requests do not wait.
    """

    async def ask() -> PolicyReply | None:
        step = make_decision_step(policy, PolicyMeme(name, text))
        with tempfile.TemporaryDirectory(prefix="call-", dir=folder) as place:
            async with open_client(model, calls, Path(place)) as client:
                return (await client.take(step)).value

    folder.mkdir(parents=True, exist_ok=True)
    return run_sync(ask())
