"""Which family a workflow's results belong to."""

from __future__ import annotations

from collections.abc import Mapping

from memantics.build.publish.family import Writer
from memantics.build.publish.harms import write_harms
from memantics.build.publish.intents import write_intents
from memantics.build.publish.puns import write_puns
from memantics.build.publish.questions import write_questions
from memantics.build.publish.reappraisals import write_reappraisals
from memantics.core.errors import UnknownName

WRITERS: Mapping[str, Writer] = {
    "collect-and-edit": write_intents,
    "label-by-vote": write_harms,
    "pun-form": write_puns,
    "validate": write_questions,
    "verify-stages": write_reappraisals,
}


def find_writer(workflow: str) -> Writer:
    """The writer for results of a workflow."""
    if workflow not in WRITERS:
        raise UnknownName("workflow to publish from:", workflow, WRITERS)
    return WRITERS[workflow]
