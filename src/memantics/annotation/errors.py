"""What can go wrong between a person and the data, each with what to do next.

AnnotateError
├── Forbidden      not yours, not your role, or not there: the answer is the same on purpose
├── NotFound       a member asks for something that its project does not have
├── LoginFailed    wrong name or password, or a locked account
├── TooManyAttempts  too many wrong passwords in a short time
├── TokenInvalid   an invitation or session that is used up, expired or made up
├── UnsupportedFormat     an export in a form that it does not come in
├── AnswerError    an answer that its form does not allow; names each field
├── Conflict       somebody was faster: carries both states
├── GuidelineChanged  the form was opened under an older guideline
├── Locked         the answer can no longer change, because others built on it
├── ConsentMissing the content warning has not been read and accepted
├── TrainingFailed all training rounds are used up
└── LimitReached   enough for today or this week
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from memantics.core.errors import InputError

FieldValues = Mapping[str, JsonValue]


class AnnotateError(InputError):
    """Something a person at the annotation app can act on."""


class Forbidden(AnnotateError):
    """Not allowed. Says nothing about whether the thing exists."""

    def __init__(
        self,
        what: str = "this is not open to you",
        hint: str = "ask the lead of the project for access",
    ) -> None:
        super().__init__(what, hint=hint)


class NotFound(AnnotateError):
    """A project has no such thing."""


class LoginFailed(AnnotateError):
    """Name and password do not fit; which of the two is not said."""

    def __init__(self) -> None:
        super().__init__("name or password is wrong", hint="try again, or ask for an invitation")


class TooManyAttempts(AnnotateError):
    """Wrong passwords came too often; ``wait`` is how many seconds until the next is looked at."""

    def __init__(self, wait: float) -> None:
        self.wait = wait
        super().__init__("too many wrong passwords", hint=f"wait {int(wait // 60) + 1} minutes")


class TokenInvalid(AnnotateError):
    """A token that opens nothing."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} is not valid any more", hint="ask for a new one")


class AnswerError(AnnotateError):
    """An answer that does not fit its form: one message a field.

    >>> str(AnswerError({"type": "choose one"}))
    'answer cannot be saved: type: choose one'
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        listed = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        super().__init__(f"answer cannot be saved: {listed}")


class UnsupportedFormat(AnnotateError):
    """An export does not come like that.

    >>> str(UnsupportedFormat("verdicts", "csv", ("jsonl",)))
    'verdicts do not come as csv; choose jsonl'
    """

    def __init__(self, what: str, form: str, forms: Iterable[str]) -> None:
        verb = "do" if what == "verdicts" else "does"
        super().__init__(f"{what} {verb} not come as {form}", hint=f"choose {', '.join(forms)}")


class Conflict(AnnotateError):
    """The answer changed since it was read. Nothing of either side is lost.

    ``mine`` is what was to be saved (it is kept as a draft), ``theirs`` what stands now at
    ``version``; ``by_me`` tells a second tab from a second person.
    """

    def __init__(
        self, mine: FieldValues, theirs: FieldValues, version: int, *, by_me: bool
    ) -> None:
        self.mine, self.theirs, self.version, self.by_me = mine, theirs, version, by_me
        who = "in another tab" if by_me else "by somebody else"
        super().__init__(
            f"this was saved {who} in the meantime", hint="compare the two and save again"
        )


class GuidelineChanged(AnnotateError):
    """The guideline grew while a form was open: its reader has not seen what is new."""

    def __init__(self) -> None:
        super().__init__("the guideline has changed", hint="read what is new, then save again")


class Locked(AnnotateError):
    """Later work rests on this answer."""

    def __init__(self, what: str = "later work already rests on this answer") -> None:
        super().__init__(what, hint="tell the lead of the project, who can reopen it")


class LimitReached(AnnotateError):
    """The agreed amount has been seen; ``until`` is when the next item may come (ISO)."""

    def __init__(self, span: str, limit: int, until: str) -> None:
        self.span, self.limit, self.until = span, limit, until
        super().__init__(
            f"you have seen {limit} memes this {span}, as many as agreed",
            hint=f"take a rest; work goes on after {until}",
        )


class ConsentMissing(AnnotateError):
    """Nobody is shown a meme before they agreed to see such memes."""

    def __init__(self) -> None:
        super().__init__(
            "the content warning of this project is not accepted yet",
            hint="read it, then decide",
        )


class TrainingFailed(AnnotateError):
    """The accuracy on known answers stayed below the threshold in every round."""

    def __init__(self, accuracy: float, threshold: float) -> None:
        self.accuracy, self.threshold = accuracy, threshold
        super().__init__(
            f"training ended at {accuracy:.0%}, below the {threshold:.0%} that are asked",
            hint="talk to the lead of the project, who can open another round",
        )
