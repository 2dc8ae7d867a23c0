"""What drafting intents, chats and captions share: requests, notes, and the queue for people."""

from memantics.build.drafts.asking import (
    Source,
    array,
    choice,
    complain,
    language_of,
    make_request,
    name_language,
    note_source,
    record,
    show_material,
    text,
)
from memantics.build.drafts.outcome import Miss, Tally, count_statuses
from memantics.build.drafts.queueing import queue_images
from memantics.build.drafts.wording import check_wording

__all__ = [
    "Miss",
    "Source",
    "Tally",
    "array",
    "check_wording",
    "choice",
    "complain",
    "count_statuses",
    "language_of",
    "make_request",
    "name_language",
    "note_source",
    "queue_images",
    "record",
    "show_material",
    "text",
]
