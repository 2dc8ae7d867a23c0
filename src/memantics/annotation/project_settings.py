"""Settings of a project, and the rules added to its guideline."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field as Limit

from memantics.core.queue import QueueOption
from memantics.core.records import Closed

Adjudicator = Literal["", "lead", "extra-annotator", "none"]
ItemOrder = Literal["given", "uncertainty"]


class LocalizedText(Closed):
    """A text in English and optionally Chinese."""

    en: str
    zh: str = ""

    def say(self, language: str) -> str:
        """Return the text in a language, or in English if it is missing.

        >>> LocalizedText(en="yes", zh="是").say("zh"), LocalizedText(en="yes").say("zh")
        ('是', 'yes')
        """
        return self.zh if language.startswith("zh") and self.zh else self.en


class Clarification(Closed):
    """A rule that was added to the guideline, with its time in seconds since 1970.

    ``items`` are the numbers of the items that the rule clarifies. ``drafted`` is the model that
    wrote the first draft (empty: a person). ``person`` is the pseudonym of the lead who added it.
    """

    text: LocalizedText
    at: float
    person: str = ""
    drafted: str = ""
    items: tuple[int, ...] = ()


class ProjectSettings(Closed):
    """Settings of a project; the workflow sets the defaults. Limits of 0 mean no limit.

    ``annotators_per_item`` annotators answer each item (0: as defined by the workflow). ``overlap``
    is the proportion of items that the whole team annotates; ``team`` is the size of the team.
    ``adjudicator`` resolves ties: ``lead``, ``extra-annotator`` or ``none`` (empty: as defined by
    the workflow).

    ``order`` is the order of the queue, or ``uncertainty`` (active learning). In that case
    ``random_proportion`` of the items stay in random order for unbiased metrics. ``comments`` lets
    annotators leave notes. ``prelabels`` shows or hides model suggestions, and ``suggested``
    records when that changed.

    ``pass_mark`` is the required proportion of correct training items (None: as defined by the
    workflow). With ``feedback`` off, training is a test. ``questionnaire`` is the URL of a
    questionnaire that is shown before the first meme. ``options`` are the options from the queue,
    by field.
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
    options: Mapping[str, tuple[QueueOption, ...]] = {}

    def guideline_at(self, at: float) -> int:
        """Return the guideline version at a time: 1, plus 1 for each rule added until then.

        >>> ProjectSettings().guideline_at(0)
        1
        """
        return 1 + sum(added.at <= at for added in self.clarifications)

    def suggested_at(self, at: float) -> bool:
        """Return whether model suggestions were shown at a time.

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
        """Return the current version of the guideline."""
        return 1 + len(self.clarifications)


def is_sampled(item: str, purpose: str, share: float) -> bool:
    """Return whether an item belongs to a random sample, drawn by its key (deterministic).

    >>> [is_sampled("m1", "overlap", share) for share in (0, 1)]
    [False, True]
    """
    drawn = hashlib.sha256(f"{purpose}:{item}".encode()).digest()
    return int.from_bytes(drawn[:4], "big") < share * 2**32
