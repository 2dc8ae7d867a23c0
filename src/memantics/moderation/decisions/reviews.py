"""Decisions of reviewers: record them, measure gold items, record the outcomes of appeals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.files import write_text
from memantics.core.parameters import Argument, Flag
from memantics.core.policy import (
    NO_CLAUSE,
    Policy,
    PolicyExample,
    find_role,
    read_policy,
    write_policy,
)
from memantics.core.queue import (
    ANNOTATIONS,
    AggregatedAnnotation,
    QueueCard,
    QueueItem,
    QueueOption,
    Shown,
    read_annotations,
    write_annotations,
    write_queue,
)
from memantics.core.result import Result
from memantics.metrics.interval import wilson
from memantics.metrics.rounding import settle
from memantics.moderation.decisions.cases import (
    Decision,
    DecisionCase,
    KeptContent,
    KnownDecisions,
    Outcome,
    check_clause,
    find_case,
    hash_content,
    need_clause,
    record_new_decision,
    record_outcome,
)
from memantics.moderation.decisions.images import find_images
from memantics.moderation.decisions.log import DecisionLog
from memantics.moderation.decisions.webhooks import check_url

LogFlag = Annotated[
    str | None,
    Flag(
        "SQLite file or postgresql://… of the log. Default: decisions.db in the home folder.",
        "--db",
        metavar="FILE|URL",
    ),
]
PolicyFlag = Annotated[Path | None, Flag("Policy file of the decisions.")]
RoleFlag = Annotated[
    str,
    Flag(
        "Role in which the reviewers decided; the policy must name it in 'deciders'. Default: "
        "their roles in the annotation project."
    ),
]
ImagesFlag = Annotated[
    Path | None, Flag("Folder with the images of the posts, found by their hash. Default: none.")
]
_DECIDED = {"yes": "violates", "no": "allowed"}
WORKFLOW = "review-policy"


@dataclass(frozen=True, slots=True)
class RecordedDecisions(Result):
    """Decisions that a command appended to the log.

    ``skipped`` counts memes without a clear answer, and memes that were recorded before.
    ``images`` counts stored images, ``images_missing`` those that the folder does not have.
    """

    decisions: tuple[Decision, ...]
    skipped: int
    images: int = 0
    images_missing: int = 0


def record_reviews(
    annotations: Annotated[
        Path, Argument("Annotations of a policy review, as 'annotate export' writes them.")
    ],
    database: LogFlag = None,
    *,
    policy: PolicyFlag = None,
    webhooks: Annotated[
        Sequence[str], Flag("URL to which each decision is sent; repeatable.", "--webhook")
    ] = (),
    keep_texts: Annotated[
        float | None, Flag("Also store the texts, for N days. Default: not stored.", min=0)
    ] = None,
    images: ImagesFlag = None,
    keep_images: Annotated[
        float | None,
        Flag("Also store the images of --images, for N days. Default: not stored.", min=0),
    ] = None,
    role: RoleFlag = "",
) -> RecordedDecisions:
    """Record the decisions of reviewers in the decision log.

    A meme that people decided under the same policy version before is skipped, so that the command
    can be repeated after an interruption. Automated decisions do not count.

    Args:
        annotations: Annotation file of a policy review.
        database: SQLite file or PostgreSQL URL of the log.
        policy: Policy file of the review; its version is recorded.
        webhooks: URLs that receive decided cases.
        keep_texts: Store texts for this number of days.
        images: Folder with the images, found by their hash.
        keep_images: Store these images for this number of days.
        role: Role in which the reviewers decided. Default: their roles in the annotation project.

    Returns:
        The recorded decisions, and the number of skipped memes.

    Raises:
        InputError: An annotation cites a clause that the policy does not have, or a reviewer has no
            role that may decide under it; or only one of ``images`` and ``keep_images`` is given.
            Then nothing is recorded.

    Example:
        >>> recorded = mm.record_reviews("annotations.jsonl", "new.db", policy="policy.md")
        >>> [decision] = recorded.decisions
        >>> decision.verdict, decision.clause
        ('violates', '1')
    """
    if (images is None) != (keep_images is None):
        raise InputError(
            "--images and --keep-images belong together",
            hint="add --images FOLDER and --keep-images DAYS",
        )
    read = read_policy(policy) if policy else None
    urls = [check_url(url) for url in webhooks]
    decided: list[tuple[Decision, str]] = []
    skipped = 0
    for one in read_annotations(_find_annotations(Path(annotations))):
        if "gold" in one.hidden:
            continue
        decision = _decide(one, read, role)
        if decision is None:
            skipped += 1
        else:
            decided.append((decision, str(one.hidden.get("text") or "")))
    wanted = {one.content_sha256 for one, _ in decided if one.content_type == "image"}
    pictures = find_images(Path(images), wanted) if images is not None else {}
    made: list[Decision] = []
    with DecisionLog(database, webhooks=urls) as log:
        known = KnownDecisions(log)
        for decision, said in decided:
            text = said or None if keep_texts is not None else None
            picture = pictures.get(decision.content_sha256)
            kept = KeptContent(text, keep_texts, picture, keep_images)
            new = record_new_decision(log, decision, known, kept)
            made += [new] if new is not None else []
    skipped += len(decided) - len(made)
    if images is None:
        return RecordedDecisions(tuple(made), skipped)
    stored = [one.content_sha256 in pictures for one in made if one.content_type == "image"]
    return RecordedDecisions(tuple(made), skipped, sum(stored), len(stored) - sum(stored))


def _find_annotations(path: Path) -> Path:
    file = path / ANNOTATIONS if path.is_dir() else path
    if not file.is_file():
        raise InputError(
            f"no annotations at {file}", hint="write them with 'memantics annotate export'"
        )
    return file


def _find_roles(one: AggregatedAnnotation, policy: Policy | None, given: str) -> str:
    """Return the roles in which people decided; raise InputError if one may not decide."""
    if policy is None:
        return given
    hint = "let another person decide, or name the role in which they decided with --role"
    found = {
        find_role(policy, [given] if given else vote.roles, f"reviewer {vote.annotator}", hint)
        for vote in one.annotations
    }
    return ", ".join(sorted(found))


def _decide(one: AggregatedAnnotation, policy: Policy | None, role: str) -> Decision | None:
    """Make the decision of an aggregated annotation; None if people did not agree."""
    said = _DECIDED.get(str(one.values.get("harmful") or ""))
    if said is None or not one.kept:
        return None
    hidden = one.hidden
    clause = str(one.values.get("clause") or NO_CLAUSE) if said == "violates" else NO_CLAUSE
    people = sorted({name_reviewer(vote.annotator) for vote in one.annotations})
    sha256, text = str(hidden.get("sha256") or ""), str(hidden.get("text") or "")
    decision = Decision(
        content_sha256=sha256 or hash_content(text),
        content_id=str(hidden.get("id") or one.group),
        content_type="image" if sha256 else "text",
        verdict="violates" if said == "violates" else "allowed",
        band="block" if said == "violates" else "allow",
        clause=clause,
        policy=policy.name if policy else "",
        policy_sha256=policy.digest if policy else "",
        detector=str(hidden.get("detector") or ""),
        model=str(hidden.get("model") or "") if hidden.get("model_clause") == clause else "",
        operating_point=str(hidden.get("operating_point") or ""),
        reviewer=", ".join(people),
        role=_find_roles(one, policy, role),
        language=str(hidden.get("language") or ""),
    )
    if policy is not None:
        check_clause(decision, policy)
    return decision


def name_reviewer(annotator: str) -> str:
    """Return the pseudonym of a reviewer in one line."""
    return annotator.strip().replace(",", " ")[:80]


def list_clause_options(policy: Policy) -> list[QueueOption]:
    """Return the clauses of a policy as options of the review form."""
    return [
        QueueOption(
            value=one.number,
            en=f"{one.number} {one.say_title('en')}",
            zh=f"{one.number} {one.say_title('zh')}",
        )
        for one in policy.clauses
    ]


def write_policy_queue(
    folder: Path, policy: Policy, items: Sequence[QueueItem], title: str, language: str
) -> int:
    """Write a queue whose form and guideline are a policy, which is stored beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_text(folder / "policy.md", write_policy(policy), "policy")
    card = QueueCard(
        title=f"{title}: {policy.title}",
        workflow=WORKFLOW,
        language=language,
        warning="Memes that may be harmful.",
        origin=f"policy {policy.name}",
        options={"clause": list_clause_options(policy)},
        policy="policy.md",
    )
    return write_queue(folder, card, items)


def mix_gold(items: Sequence[QueueItem], policy: Policy, share: float) -> Iterator[QueueItem]:
    """Mix hidden gold items into a review queue, made from the examples of the policy.

    They look like the others: their id is a hash, and the reason for review is that of the item
    before. Only the hidden field ``gold`` marks them. Every N-th item is a gold item, until the
    examples are used up.
    """
    examples = [
        (one.value, clause.number if own else NO_CLAUSE)
        for clause in policy.clauses
        for own, listed in ((True, clause.examples), (False, clause.counter_examples))
        for one in listed
        if one.kind == "text"
    ]
    wanted = min(len(examples), round(len(items) * share / (1 - share))) if share else 0
    every = max(1, len(items) // wanted) if wanted else 0
    used = 0
    for place, item in enumerate(items, 1):
        yield item
        if every and place % every == 0 and used < wanted:
            text, clause = examples[used]
            used += 1
            name = f"dec-{hash_content(f'{policy.digest}{text}')[:32]}"
            hidden: dict[str, JsonValue] = {"id": name, "text": text, "gold": clause}
            why = [part for part in item.shown if part.label == "why"]
            shown = [Shown(label="text", value=text), *why]
            yield QueueItem(id=name, group=name, shown=shown, hidden=hidden)


@dataclass(frozen=True, slots=True)
class ReviewerAccuracy:
    """Accuracy of one reviewer on the hidden gold items of one day."""

    reviewer: str
    day: str
    items: int
    right: int
    low: float
    high: float


def measure_reviewers(
    annotations: Annotated[
        Sequence[Path],
        Argument("Annotation files of queues that were made with --gold.", kind=list[Path]),
    ],
) -> list[ReviewerAccuracy]:
    """Measure each reviewer's accuracy by day on test items with a known clause.

    Args:
        annotations: Annotation files of review queues with gold items.

    Returns:
        One row per reviewer and day, with a 95% confidence interval.

    Raises:
        InputError: A file does not exist, or no annotation is of a gold item.

    Example:
        >>> found = mm.measure_reviewers(["annotations.jsonl"])
        >>> [(one.reviewer, one.right, one.items) for one in found]
        [('reviewer-1', 1, 1)]
    """
    marks: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for path in annotations:
        for one in read_annotations(_find_annotations(Path(path))):
            gold = one.hidden.get("gold")
            if not isinstance(gold, str):
                continue
            for vote in one.annotations:
                answer = vote.values.get("harmful")
                said = str(vote.values.get("clause") or "") if answer == "yes" else ""
                said = NO_CLAUSE if answer == "no" else said  # "unsure" is not right
                marks[vote.annotator, vote.at[:10]].append(said == gold)
    if not marks:
        raise InputError(
            "the annotations contain no test item whose correct policy clause is known",
            hint="add such items to the queue with the option --gold of 'screen' or 'decisions "
            "queue'",
        )
    found = []
    for (name, day), right in sorted(marks.items()):
        low, high = wilson(sum(right), len(right)) or (0.0, 1.0)
        found.append(ReviewerAccuracy(name, day, len(right), sum(right), settle(low), settle(high)))
    return found


@dataclass(frozen=True, slots=True)
class ResolvedAppeals(Result):
    """Outcomes of appeals; ``refused`` were reviewed by a person who had decided before."""

    outcomes: tuple[Outcome, ...]
    refused: tuple[str, ...]
    undecided: int
    labels: Path | None = None
    policy: Path | None = None


@dataclass(frozen=True, slots=True)
class _AppealReview:
    """A review of an appeal; ``clause`` is empty if people did not decide."""

    annotation: AggregatedAnnotation
    decision: str
    people: str
    clause: str
    role: str


def _read_appeal_reviews(path: Path, policy: Policy | None, role: str) -> list[_AppealReview]:
    """Read the reviews of appeals, without gold items, and check the roles of the reviewers."""
    found = []
    for one in read_annotations(_find_annotations(path)):
        name = str(one.hidden.get("decision") or "")
        if not name:
            continue  # a gold item
        people = ", ".join(sorted({name_reviewer(vote.annotator) for vote in one.annotations}))
        said = _DECIDED.get(str(one.values.get("harmful") or ""))
        if said is None or not one.kept or not people:
            found.append(_AppealReview(one, name, people, "", ""))
            continue
        clause = str(one.values.get("clause") or NO_CLAUSE) if said == "violates" else NO_CLAUSE
        if policy is not None:
            need_clause(clause, policy)
        held = _find_roles(one, policy, role)
        found.append(_AppealReview(one, name, people, clause, held))
    return found


def resolve_appeals(
    annotations: Annotated[Path, Argument("Annotations of the queue of appeals.")],
    database: LogFlag = None,
    *,
    webhooks: Annotated[
        Sequence[str],
        Flag("URL to which each overturned decision is sent; repeatable.", "--webhook"),
    ] = (),
    labels: Annotated[
        Path | None,
        Flag("File for the overturned decisions, as annotations for 'detector retrain'."),
    ] = None,
    policy: PolicyFlag = None,
    next_policy: Annotated[
        Path | None,
        Flag("File for the next version of --policy, with the overturned decisions as examples."),
    ] = None,
    role: RoleFlag = "",
) -> ResolvedAppeals:
    """Record the outcomes of appeals; overturned ones become labels and counter-examples.

    Args:
        annotations: Annotations of the queue of appeals.
        database: SQLite file or PostgreSQL URL of the log.
        webhooks: URLs that receive overturned cases.
        labels: File for overturned cases, as annotations for ``detector retrain``.
        policy: Policy file of the decisions.
        next_policy: File for the next version of the policy.
        role: Role in which the reviewers decided. Default: their roles in the annotation project.

    Returns:
        The outcomes, and the decisions that another person must review.

    Raises:
        InputError: ``next_policy`` was given without ``policy``, a reviewer has no role that may
            decide under it, or cites a clause that it does not have. Then nothing is recorded.

    Example:
        >>> mm.resolve_appeals("appeals.jsonl", "decisions.db").outcomes[0].overturned
        True
    """
    if next_policy is not None and policy is None:
        raise InputError("--next-policy needs --policy", hint="add the current policy file")
    urls = [check_url(url) for url in webhooks]
    read = read_policy(policy) if policy else None
    reviews = _read_appeal_reviews(Path(annotations), read, role)
    outcomes: list[Outcome] = []
    overturned: list[tuple[DecisionCase, AggregatedAnnotation]] = []
    refused: list[str] = []
    undecided = 0
    with DecisionLog(database, webhooks=urls, create=False) as log:
        log.await_writers()
        for review in reviews:
            case = find_case(log, review.decision)
            before = set(case.decision.reviewer.split(", "))
            if case.outcome is not None:
                if case.outcome.overturned:  # recorded before an interruption
                    overturned.append((case, review.annotation))
            elif not review.clause:
                undecided += 1
            elif before & set(review.people.split(", ")):
                refused.append(review.decision)
            else:
                done = record_outcome(
                    log, review.decision, clause=review.clause, reviewer=review.people,
                    role=review.role, policy=read,
                )  # fmt: skip
                outcomes.append(done)
                overturned += [(case, review.annotation)] if done.overturned else []
    if labels is not None:
        write_annotations(labels, [annotation for _, annotation in overturned])
    if next_policy is not None and read is not None:
        grown = grow_policy(read, overturned)
        write_text(next_policy, write_policy(grown), "policy")
    return ResolvedAppeals(tuple(outcomes), tuple(refused), undecided, labels, next_policy)


def grow_policy(
    policy: Policy, overturned: Sequence[tuple[DecisionCase, AggregatedAnnotation]]
) -> Policy:
    """Add overturned cases to the next version of a policy.

    A post that does not break its clause becomes a counter-example; an allowed post that breaks a
    clause becomes an example. Posts without a stored text are cited by their id.
    """
    clauses = {one.number: one for one in policy.clauses}
    for case, annotation in overturned:
        text = str(annotation.hidden.get("text") or "")
        value = " ".join(text.split()) or case.decision.content_id
        example = PolicyExample("text" if text else "meme", value)
        was = case.decision.verdict == "violates"
        number = case.decision.clause if was else str(annotation.values.get("clause") or "")
        clause = clauses.get(number)
        if clause is None or not value:
            continue
        if was and example not in clause.counter_examples:
            known = (*clause.counter_examples, example)
            kept = tuple(one for one in clause.examples if one != example)
            clauses[number] = replace(clause, counter_examples=known, examples=kept)
        elif not was and example not in clause.examples:
            clauses[number] = replace(clause, examples=(*clause.examples, example))
    head, _, tail = policy.version.rpartition(".")
    number = f"{int(tail) + 1}" if tail.isdecimal() else f"{tail}-next"
    version = f"{head}.{number}" if head else number
    return replace(policy, version=version, clauses=tuple(clauses.values()))
