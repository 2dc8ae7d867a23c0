"""What a project may set for itself, and the guideline as it has grown there."""

from __future__ import annotations

import hashlib
from typing import Annotated, Literal

from pydantic import Field as Limit

from memantics.core.records import Closed

Adjudicator = Literal["", "lead", "extra-annotator", "none"]
ItemOrder = Literal["given", "uncertainty"]


class LocalizedText(Closed):
    """A text in the languages of the interface."""

    en: str
    zh: str = ""

    def say(self, language: str) -> str:
        """The text in a language, else in English.

        >>> LocalizedText(en="yes", zh="是").say("zh"), LocalizedText(en="yes").say("zh")
        ('是', 'yes')
        """
        return self.zh if language.startswith("zh") and self.zh else self.en


class Clarification(Closed):
    """What was added to the guideline of a project, and when (seconds since 1970).

    ``items`` are the numbers of the unclear items that it settles, ``drafted`` the model that
    wrote its first draft (empty: a person did), ``person`` who decided on it.
    """

    text: LocalizedText
    at: float
    person: str = ""
    drafted: str = ""
    items: tuple[int, ...] = ()


class ProjectSettings(Closed):
    """What a project may set for itself; a workflow gives the defaults. 0: no limit.

    ``people`` judge each item (0: as many as the workflow says), and all of the ``team`` judge a
    ``shared`` share of items. ``adjudicator`` settles ties: the lead, one more vote, or nobody
    (empty: as the workflow says). ``order`` is that of the queue, or by expected information; then
    a ``random_proportion`` of items keeps its chance place, for figures without bias. ``comments``:
    whoever judges may leave a note. ``suggested`` says when suggestions were shown or hidden.
    ``pass_mark`` is the share of training items to get right (None: as the workflow says; with it,
    any workflow trains people on items with known answers). Without ``feedback`` training is a
    test. ``questionnaire`` is the address of a form about oneself, shown before the first meme.
    """

    annotators_per_item: Annotated[int, Limit(ge=0, le=50)] = 0
    overlap: Annotated[float, Limit(ge=0, le=1)] = 0
    team: Annotated[int, Limit(ge=0)] = 0
    adjudicator: Adjudicator = ""
    order: ItemOrder = "given"
    random_proportion: Annotated[float, Limit(ge=0, le=1)] = 0.2
    comments: bool = False
    prelabels: Literal["shown", "hidden"] = "hidden"
    training: bool = True
    pass_mark: Annotated[float, Limit(ge=0, le=1)] | None = None
    feedback: bool = True
    questionnaire: Annotated[str, Limit(max_length=500, pattern=r"^(https?://\S+)?$")] = ""
    lease_minutes: Annotated[int, Limit(ge=1, le=10_080)] = 30
    daily_limit: Annotated[int, Limit(ge=0, le=100_000)] = 300
    weekly_limit: Annotated[int, Limit(ge=0, le=1_000_000)] = 1200
    break_minutes: Annotated[int, Limit(ge=0, le=600)] = 40
    contact: Annotated[str, Limit(max_length=500)] = ""
    warning: Annotated[str, Limit(max_length=2000)] = ""
    clarifications: tuple[Clarification, ...] = ()
    suggested: tuple[tuple[float, bool], ...] = ()

    def guideline_at(self, at: float) -> int:
        """The version of the guideline at a time: 1 is the workflow's, each clarification adds 1.

        >>> ProjectSettings().guideline_at(0)
        1
        """
        return 1 + sum(added.at <= at for added in self.clarifications)

    def suggested_at(self, at: float) -> bool:
        """Whether suggestions of models were shown at a time.

        >>> changed = ProjectSettings(prelabels="shown", suggested=((5.0, True),))
        >>> [changed.suggested_at(at) for at in (4, 5)], ProjectSettings().suggested_at(4)
        ([False, True], False)
        """
        shown = not self.suggested[0][1] if self.suggested else self.prelabels == "shown"
        for since, now_shown in self.suggested:
            shown = now_shown if since <= at else shown
        return shown

    @property
    def guideline(self) -> int:
        """The version of the guideline that holds now."""
        return 1 + len(self.clarifications)


def is_sampled(item: str, purpose: str, share: float) -> bool:
    """Whether an item belongs to a share of all, drawn by its key: always the same ones.

    >>> [is_sampled("m1", "overlap", share) for share in (0, 1)]
    [False, True]
    """
    drawn = hashlib.sha256(f"{purpose}:{item}".encode()).digest()
    return int.from_bytes(drawn[:4], "big") < share * 2**32
