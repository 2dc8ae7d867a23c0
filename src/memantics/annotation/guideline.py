"""Function behind ``annotate guideline``: list disagreements, draft a rule, add a rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.annotation import require_extra
from memantics.annotation.commands import (
    Storage,
    find_admin,
    open_annotations,
    require_project,
)
from memantics.annotation.drafting import make_drafter
from memantics.annotation.project_settings import LocalizedText
from memantics.core.parameters import Argument, Flag
from memantics.core.policy import read_policy
from memantics.core.result import Result
from memantics.models.client import CallSettings


@dataclass(frozen=True, slots=True)
class UnclearItem:
    """An item with disagreement: annotations per field, and the annotators' notes."""

    number: int
    key: str
    split: float
    annotations: dict[str, tuple[str, ...]]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GuidelineState(Result):
    """Guideline version, items with disagreement, and a drafted rule."""

    project: int
    version: int
    unclear: tuple[UnclearItem, ...]
    draft: LocalizedText | None = None

    def lines(self) -> Iterator[str]:
        """Return the state as lines of text."""
        yield f"project {self.project}: guideline version {self.version}"
        for item in self.unclear:
            yield f"item {item.number} ({item.key}): {item.split:.0%} outside the majority"
            yield from (f"  {name}: {', '.join(said)}" for name, said in item.annotations.items())
            yield from (f"  noted: {note}" for note in item.notes)
        if self.draft is not None:
            yield f"draft: {self.draft.en}"
            yield f"       {self.draft.zh}"


def grow_guideline(
    storage: Storage,
    project: Annotated[int, Argument("Project number.")],
    *,
    items: Annotated[
        Sequence[int], Flag("Number of an item that the rule clarifies. Repeatable.", "--item")
    ] = (),
    model: Annotated[
        str | None, Flag("Model that drafts a rule for the items.", "--model -m")
    ] = None,
    add: Annotated[str, Flag("Rule to add to the guideline, in English.")] = "",
    add_zh: Annotated[str, Flag("The same rule in Chinese.")] = "",
    drafted: Annotated[
        str, Flag("Model that wrote the first draft of the rule, for the record.")
    ] = "",
    policy: Annotated[
        Path | None,
        Flag("Policy file: the new version of the policy that is the project's guideline."),
    ] = None,
    again: Annotated[
        bool,
        Flag(
            "Have the items that the rule clarifies annotated again.",
            "--reannotate/--no-reannotate",
        ),
    ] = True,
    calls: CallSettings | None = None,
) -> GuidelineState:
    """List items with disagreement, draft a rule with a model, or add a rule to the guideline.

    Args:
        storage: Database and image folder.
        project: Project number.
        items: Numbers of the items that the rule clarifies.
        model: Model that drafts a rule.
        add: Rule to add, in English.
        add_zh: The same rule in Chinese.
        drafted: Model that wrote the first draft, for the record.
        policy: Next version of the policy that is the guideline. Items that cite a changed clause
            are annotated again.
        again: Have the items that the rule clarifies annotated again.
        calls: Settings of the model calls.

    Returns:
        The guideline version, the items with disagreement, and a drafted rule.

    Raises:
        NotFound: There is no disagreement on these items.
        ModelError: The model returned no draft.
    """
    require_extra()
    with open_annotations(storage) as service:
        actor = find_admin(service)
        require_project(service, actor, project)
        draft = None
        if policy is not None:
            service.guideline.adopt(actor, project, read_policy(policy), again=again)
        elif add:
            words = LocalizedText(en=add, zh=add_zh)
            service.guideline.clarify(actor, project, words, items, drafted=drafted, again=again)
        elif model is not None:
            prompt = service.guideline.describe(actor, project, items)
            draft = make_drafter(model, calls or CallSettings())(prompt)
        unclear = tuple(
            UnclearItem(
                one.number,
                one.key,
                one.split,
                {
                    name: tuple("–" if value is None else str(value) for _, value in votes)
                    for name, votes in one.fields.items()
                },
                tuple(note for _, note in one.notes),
            )
            for one in service.guideline.unclear(actor, project)
        )
        version = service.projects.get(actor, project).settings.guideline
        return GuidelineState(project, version, unclear, draft)
