"""Errors of the annotation app, each with a message and a next step."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from memantics.core.errors import InputError

FieldValues = Mapping[str, JsonValue]


class AnnotateError(InputError):
    """Base class of errors that a user of the annotation app can act on."""


class Forbidden(AnnotateError):
    """Access is denied. The message does not reveal whether the object exists."""

    def __init__(
        self,
        what: str = "access denied",
        hint: str = "ask the lead of the project for access",
    ) -> None:
        super().__init__(what, hint=hint)


class RoleRefused(Forbidden):
    """The policy of the project does not let the roles of a person decide."""

    def __init__(self, why: InputError) -> None:
        super().__init__(why.what, why.hint)


class NotFound(AnnotateError):
    """The project does not contain the requested object."""


class LoginFailed(AnnotateError):
    """Name or password is wrong; the message does not reveal which."""

    def __init__(self) -> None:
        super().__init__(
            "wrong name or password", hint="try again, or ask the project lead for an invitation"
        )


class TooManyAttempts(AnnotateError):
    """Too many wrong passwords; ``wait`` is the number of seconds until the next attempt."""

    def __init__(self, wait: float) -> None:
        self.wait = wait
        super().__init__(
            "too many wrong passwords", hint=f"try again in {int(wait // 60) + 1} minutes"
        )


class TokenInvalid(AnnotateError):
    """A token is expired, used or unknown."""

    def __init__(self, what: str) -> None:
        super().__init__(f"this {what} is no longer valid", hint="ask for a new one")


class AnswerError(AnnotateError):
    """An answer does not match its form; ``problems`` has one message per field.

    >>> str(AnswerError({"type": "choose one"}))
    'answer cannot be saved: type: choose one'
    """

    def __init__(self, problems: Mapping[str, str]) -> None:
        self.problems = dict(problems)
        listed = "; ".join(f"{field}: {problem}" for field, problem in problems.items())
        super().__init__(f"answer cannot be saved: {listed}")


class UnsupportedFormat(AnnotateError):
    """An export is not available in the requested format.

    >>> str(UnsupportedFormat("annotations", "csv", ("jsonl",)))
    'annotations cannot be exported as csv; choose jsonl'
    """

    def __init__(self, what: str, form: str, forms: Iterable[str]) -> None:
        super().__init__(f"{what} cannot be exported as {form}", hint=f"choose {', '.join(forms)}")


class Conflict(AnnotateError):
    """The answer was changed after this user loaded it; both versions are kept.

    ``mine`` is the submitted answer (kept as a draft), ``theirs`` the saved one at ``version``.
    ``by_me`` is true if the same person saved it in another tab.
    """

    def __init__(
        self, mine: FieldValues, theirs: FieldValues, version: int, *, by_me: bool
    ) -> None:
        self.mine, self.theirs, self.version, self.by_me = mine, theirs, version, by_me
        who = "in another tab" if by_me else "by another person"
        super().__init__(
            f"this item was saved {who} in the meantime",
            hint="compare both versions and save again",
        )


class GuidelineChanged(AnnotateError):
    """The guideline changed while the form was open."""

    def __init__(self) -> None:
        super().__init__("the guideline has changed", hint="read the new rule, then save again")


class Locked(AnnotateError):
    """Later answers depend on this answer."""

    def __init__(self, what: str = "this answer is locked: later answers depend on it") -> None:
        super().__init__(what, hint="ask the project lead to reopen it")


class LimitReached(AnnotateError):
    """The daily or weekly limit is reached; ``until`` is the time of the next item (ISO 8601)."""

    def __init__(self, span: str, limit: int, until: str) -> None:
        self.span, self.limit, self.until = span, limit, until
        super().__init__(
            f"you have reached the limit of {limit} memes per {span}",
            hint=f"you can continue after {until}",
        )


class ConsentMissing(AnnotateError):
    """The content warning has not been accepted."""

    def __init__(self) -> None:
        super().__init__(
            "you have not accepted the content warning of this project",
            hint="read and accept it first",
        )


class TrainingFailed(AnnotateError):
    """The accuracy on items with known answers was below the threshold in every round."""

    def __init__(self, accuracy: float, threshold: float) -> None:
        self.accuracy, self.threshold = accuracy, threshold
        super().__init__(
            f"training accuracy is {accuracy:.0%}, below the required {threshold:.0%}",
            hint="ask the project lead for another training round",
        )
