"""Questions grounded in what is known about memes, with a critic that sends them back."""

from memantics.build.questions.asking import QuestionSubject
from memantics.build.questions.chain import (
    Built,
    People,
    build_questions,
    list_slots,
    pair_subjects,
)
from memantics.build.questions.records import (
    Critic,
    DraftQuestion,
    QuestionOption,
    QuestionSettings,
    SetAside,
)
from memantics.build.questions.report import Leak, QuestionReport, report_questions
from memantics.build.questions.review import (
    QUESTIONS,
    QUEUE,
    SET_ASIDE,
    read_questions,
    write_questions,
    write_review,
)

__all__ = [
    "QUESTIONS",
    "QUEUE",
    "SET_ASIDE",
    "Built",
    "Critic",
    "DraftQuestion",
    "Leak",
    "People",
    "QuestionOption",
    "QuestionReport",
    "QuestionSettings",
    "QuestionSubject",
    "SetAside",
    "build_questions",
    "list_slots",
    "pair_subjects",
    "read_questions",
    "report_questions",
    "write_questions",
    "write_review",
]
