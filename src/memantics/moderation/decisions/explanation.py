"""The explanation of a decision for the author of a post, in the author's language.

The template needs no model. A model may word the explanation; its text is used only if it passes
:func:`find_explanation_faults`: no probability, no address, no link, and no quoted word that is
neither in the policy nor in the content of the post.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from memantics.core.model import Step
from memantics.core.parameters import Flag
from memantics.core.policy import NO_CLAUSE, Policy
from memantics.core.prompt import enclose, prompts_beside
from memantics.core.records import Form, Lenient, Message, Request, Sampling
from memantics.core.reply import read_object
from memantics.core.task import Unparsed
from memantics.core.text import clean_line
from memantics.core.waiting import run_sync
from memantics.models import drafts
from memantics.models.client import CallSettings, open_client
from memantics.moderation.decisions.cases import Decision, DecisionCase, Outcome

ExplanationModel = Annotated[
    str | None,
    Flag("Model that writes the text of the explanation. Default: a template.", "--model -m"),
]
_LONGEST = 1200
_TEXTS = {
    "en": {
        "violates": "Your post breaks clause {number}, “{title}”, of {policy}.",
        "rule": "The rule: {rule}",
        "cited": "Your post breaks clause {number} of the policy{named}.",
        "allowed": "Your post breaks no clause of {policy}.",
        "unrestricted": "Your post is allowed.",
        "restricted": "Your post is not allowed. No clause of a policy was applied.",
        "undecided": "There is no decision on your post yet. A person will review it.",
        "no_clause": "An automatic check flagged your post. It applied no clause of a policy.",
        "evidence": "Your post says: “{evidence}”.",
        "automated": "The decision was made automatically.",
        "person": "A person made or confirmed the decision.",
        "named": " “{id}”, version {version}",
        "decided": "You can appeal against this decision. A person who has not decided on your post"
        " before will review it.",
        "appealed": "There is an appeal against this decision. A person who has not decided on your"
        " post before will review it.",
        "upheld": "After an appeal, another person reviewed the decision and upheld it.",
        "overturned": "After an appeal, another person reviewed the decision and overturned it.",
    },
    "zh": {
        "violates": "你的帖子违反了《{policy}》第 {number} 条“{title}”。",
        "rule": "规则：{rule}",
        "cited": "你的帖子违反了政策{named}第 {number} 条。",
        "allowed": "你的帖子没有违反《{policy}》的任何条款。",
        "unrestricted": "你的帖子未受限制。",
        "restricted": "你的帖子不被允许，没有适用任何政策条款。",
        "undecided": "对你的帖子尚未作出决定，将由人工审核。",
        "no_clause": "自动检测标记了你的帖子，没有适用任何政策条款。",
        "evidence": "你的帖子写道：“{evidence}”。",
        "automated": "该决定由系统自动作出。",
        "person": "该决定由人工作出或确认。",
        "named": "“{id}”（版本 {version}）",
        "decided": "你可以对该决定提出申诉，将由未参与过该决定的审核员复核。",
        "appealed": "该决定已有申诉，将由未参与过该决定的审核员复核。",
        "upheld": "经申诉，另一位审核员复核后维持了该决定。",
        "overturned": "经申诉，另一位审核员复核后推翻了该决定。",
    },
}
_PROBABILITY = re.compile(
    r"\d\s*[%％‰]|\b[01]?\.\d|probab|likelihood|confiden|percent|per cent|\bscore"
    r"|概率|置信|可能性|百分",
    re.I,
)
_PERSONAL = re.compile(r"\S+@\S+|https?://|www\.|(?<!\w)@\w+|\+?\d[\d ()/-]{6,}\d")
_QUOTED = re.compile(r"[“\"「『]([^”\"」』]{2,200})[”\"」』]")
find_prompts = prompts_beside(__file__)


def explain_decision(case: DecisionCase, policy: Policy | None, language: str) -> str:
    """Write the explanation of a decision from its clause and evidence, without a model.

    Args:
        case: The decision, with the text of the post if it is stored.
        policy: The policy of the decision; None if no policy was applied, or if its version is not
            at hand.
        language: Language of the author: Chinese for ``zh…``, else English.

    Returns:
        A text without a probability and without data of other people.
    """
    texts = _TEXTS["zh" if language.startswith("zh") else "en"]
    decision = case.decision
    if decision.verdict == "undecided":
        return texts["undecided"]
    parts = _say_verdict(decision, policy, texts, language)
    if case.text and decision.verdict == "violates":
        evidence = _hide_personal(clean_line(case.text, 200)).replace("“", "").replace("”", "")
        parts.append(texts["evidence"].format(evidence=evidence))
    parts.append(texts["automated" if decision.automated else "person"])
    if decision.verdict == "violates" or case.appeal is not None:
        parts.append(texts[case.state])
    if case.restricted_by_appeal and case.outcome is not None:
        parts += _say_outcome(case.outcome, decision, policy, texts, language)
    elif case.state == "overturned":
        parts.append(texts["unrestricted"])
    return (" " if texts is _TEXTS["en"] else "").join(parts)


def _say_outcome(
    outcome: Outcome,
    decision: Decision,
    policy: Policy | None,
    texts: Mapping[str, str],
    language: str,
) -> list[str]:
    """Say which clause a post breaks that was allowed before the appeal."""
    name = outcome.policy or decision.policy
    now = replace(decision, verdict="violates", clause=outcome.clause, policy=name)
    digest = outcome.policy_sha256 or decision.policy_sha256
    same = policy is not None and digest in ("", policy.digest)
    return _say_verdict(now, policy if same else None, texts, language)


def _say_verdict(
    decision: Decision, policy: Policy | None, texts: Mapping[str, str], language: str
) -> list[str]:
    """Say which clause the post breaks; another version of the policy is named, not quoted."""
    clause = policy.find(decision.clause) if policy else None
    if clause is not None and policy is not None:
        title = clause.say_title(language)
        says = texts["violates"].format(number=clause.number, title=title, policy=policy.title)
        return [says, texts["rule"].format(rule=clause.say_rule(language).replace("*", ""))]
    if decision.verdict == "allowed":
        return [texts["allowed"].format(policy=policy.title) if policy else texts["unrestricted"]]
    if decision.clause != NO_CLAUSE:
        name, _, version = decision.policy.partition("+")[0].partition("@")
        named = texts["named"].format(id=name, version=version) if name else ""
        return [texts["cited"].format(number=decision.clause, named=named)]
    checked = decision.automated or decision.detector or decision.model
    return [texts["no_clause" if checked else "restricted"]]


def _hide_personal(text: str) -> str:
    return _PERSONAL.sub("…", text)


def find_explanation_faults(text: str, policy: Policy, content: str) -> list[str]:
    """List why an explanation must not be sent; empty if it may be.

    >>> from memantics.core.policy import Policy
    >>> policy = Policy("p", "1", ("en",), ("lead",), "Rules", "", {}, ())
    >>> find_explanation_faults("It is harmful with 87 % certainty.", policy, "")
    ['it states a probability']
    >>> find_explanation_faults("Ask joe@example.org, who wrote “you fools”.", policy, "hi")
    ['it contains an address, a link or a number of a person', 'it quotes words of others']
    """
    faults = []
    if _PROBABILITY.search(text):
        faults.append("it states a probability")
    if _PERSONAL.search(text):
        faults.append("it contains an address, a link or a number of a person")
    known = " ".join(
        [content, policy.title]
        + [part for one in policy.clauses for part in (*one.title.values(), *one.rule.values())]
    ).casefold()
    quoted = (" ".join(one.casefold().split()) for one in _QUOTED.findall(text))
    if any(one.strip(" .…") not in " ".join(known.split()) for one in quoted):
        faults.append("it quotes words of others")
    return faults


class _Said(Lenient):
    explanation: str


def make_explanation_step(case: DecisionCase, policy: Policy, language: str) -> Step[str]:
    """Build the step that lets a model word the explanation; a text with faults is rejected."""
    plain = explain_decision(case, policy, language)
    content = case.text or ""

    def read(reply: str) -> str:
        text = clean_line(read_object(reply, _Said).explanation, _LONGEST)
        faults = find_explanation_faults(text, policy, content)
        faults += ["it names a reviewer"] if any(name in text for name in case.deciders) else []
        if not text or faults:
            raise Unparsed("; ".join(faults) or "the explanation is empty")
        clause = case.decision.clause
        if clause != NO_CLAUSE and not re.search(rf"(?<![\d.]){re.escape(clause)}(?![\d])", text):
            raise Unparsed(f"the explanation does not name clause {clause}")
        return text

    body = find_prompts()["explain"].fill(
        facts=enclose("facts", plain),
        content=enclose("content of the post", content or "not stored"),
        language=drafts.name_language(language),
    )
    schema = drafts.record(explanation=drafts.text(_LONGEST))
    form = Form("", (), language, "json")
    request = Request((Message("user", (body,)),), form, Sampling(), schema)
    return Step(f"{case.decision.id}/explain", request, read)


def word_explanation(
    case: DecisionCase, policy: Policy, language: str, model: str, calls: CallSettings
) -> str:
    """Let a model word the explanation; use the template if the text fails the checks."""

    async def ask() -> str | None:
        # Calls are not logged: they contain the text of the post.
        with tempfile.TemporaryDirectory(prefix="explain-") as folder:
            async with open_client(model, calls, Path(folder)) as client:
                return (await client.take(make_explanation_step(case, policy, language))).value

    return run_sync(ask()) or explain_decision(case, policy, language)
