"""What a lead decides about an annotation project, as flags of the commands."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from memantics.core.parameters import Flag

if TYPE_CHECKING:
    from memantics.annotate.project_settings import ProjectSettings
    from memantics.annotate.records import Actor
    from memantics.annotate.service import AnnotationService

_SET = "training_set"


@dataclass(frozen=True, slots=True)
class ProjectChanges:
    """Settings of a project that are not its workflow's; None: as they are."""

    people: Annotated[
        int | None, Flag("How many people judge each item. Votes are kept.", min=1, max=50)
    ] = None
    shared: Annotated[
        float | None, Flag("Share of items that the whole team judges.", min=0, max=1)
    ] = None
    adjudicator: Annotated[
        Literal["lead", "vote", "nobody"] | None,
        Flag("Who settles ties: the lead, one more vote of another person, or nobody."),
    ] = None
    order: Annotated[
        Literal["given", "informative"] | None,
        Flag("Order of items: that of the queue, or by expected information."),
    ] = None

    comments: Annotated[
        bool | None, Flag("Let people leave a comment with each item.", "--comments")
    ] = None
    prelabels: Annotated[
        Literal["shown", "hidden"] | None,
        Flag("Suggestions of models: shown beside the form, or hidden.", "--suggestions"),
    ] = None
    daily_limit: Annotated[
        int | None, Flag("Memes a day and person; 0: no limit.", min=0, max=100_000)
    ] = None
    weekly_limit: Annotated[
        int | None, Flag("Memes a week and person; 0: no limit.", min=0, max=1_000_000)
    ] = None
    language: Annotated[
        str | None, Flag("Language of the memes, such as zh; invitations greet people in it.")
    ] = None
    pass_mark: Annotated[
        float | None, Flag("Share of training items to get right before real work.", min=0, max=1)
    ] = None
    feedback: Annotated[
        bool | None,
        Flag("Show the expected answers in training, or make it a test.", "--feedback/--test"),
    ] = None
    training_set: Annotated[
        Path | None, Flag("A queue with known answers ('gold') on which people train first.")
    ] = None
    questionnaire: Annotated[
        str | None, Flag("Address of a questionnaire about oneself, shown before the first meme.")
    ] = None

    @property
    def said(self) -> dict[str, object]:
        """Those settings that were given."""
        given = asdict(self).items()
        return {name: value for name, value in given if value is not None and name != _SET}

    def apply(self, service: AnnotationService, actor: Actor, project: int) -> ProjectSettings:
        """Change a project, and bring its training set in; returns all of its settings."""
        settings = service.projects.change(actor, project, self.said)
        if self.training_set is not None:
            exchange = service.exchange
            exchange.import_queue(actor, project, self.training_set, training_set=True)
        return settings
