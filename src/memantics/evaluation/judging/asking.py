"""Ask a judge model for ratings; they are stored as a run inside the judged run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import JsonValue

from memantics.core.errors import InputError
from memantics.core.model import Model
from memantics.core.records import Outcome
from memantics.core.rundir import RunFacts, RunWriter, last_answers, read_facts, write_facts
from memantics.core.task import Task
from memantics.evaluation.ask import ask
from memantics.evaluation.facts import fingerprint, folder_name, now
from memantics.evaluation.judging.rubrics import Rubric
from memantics.evaluation.rubric import JudgeSetup, make_judging, read_marks
from memantics.evaluation.scoring import read_outcomes
from memantics.models.client import CallSettings, open_cache
from memantics.models.engine import AskSettings

JUDGES = "judges"


@dataclass(frozen=True, slots=True)
class Judging:
    """How judges are asked. ``purpose`` separates ratings of changed answers and of repeats."""

    rubric: Rubric
    image: bool = True
    version: str = ""
    calls: CallSettings = field(default_factory=CallSettings)
    purpose: str = ""

    def setup(self, judge: Model, served: str = "") -> JudgeSetup:
        """Return what the ratings of a judge depend on."""
        return JudgeSetup(
            name=judge.name,
            identity=judge.identity,
            prompt=self.rubric.prompt.hash,
            rubric=self.rubric.name,
            image=self.image,
            version=self.version or served,
        )


async def ask_judge(
    folder: Path, facts: RunFacts, judge: Model, task: Task, how: Judging
) -> tuple[list[Outcome], Path]:
    """Collect the ratings of one judge; the same command resumes, and asks no item twice."""
    shape: dict[str, JsonValue] = {
        "judged": facts.fingerprint,
        "identity": dict(judge.identity),
        "prompts": dict(task.prompts),
        "image": how.image,
    }
    more: Mapping[str, JsonValue] = {"version": how.version, "purpose": how.purpose}
    # Marks of version 0.3 are found again, because empty settings are left out.
    shape |= {name: value for name, value in more.items() if value}
    run_facts = replace(
        facts,
        title=f"judging {facts.title}",
        main=task.main,
        model=judge.name,
        model_note=judge.note,
        identity=judge.identity,
        prompts=task.prompts,
        invalid=str(task.invalid),
        fingerprint=fingerprint(shape),
        started=now(),
        finished="",
        imported={},
        prices=how.calls.prices,
        wording=how.purpose,
    )
    place = folder / JUDGES / folder_name(run_facts)
    calls = how.calls
    with open_cache(calls.use_cache) as cache, RunWriter(place, run_facts) as writer:
        await ask(task, judge, writer, cache, AskSettings(concurrency=calls.concurrency))
    write_facts(place, replace(run_facts, finished=now()))
    return read_outcomes(place, task), place


def find_served(place: Path) -> str:
    """Return the version that the server named in its replies; empty if it named none."""
    named = {answer.reply.served_by for answer in last_answers(place).values()} - {""}
    return ", ".join(sorted(named))


@dataclass(frozen=True, slots=True)
class StoredMarks:
    """The ratings of one judge that are stored with a run, by quality and item."""

    place: Path
    facts: RunFacts
    setup: JudgeSetup
    marks: Mapping[str, Mapping[str, float]]
    reasons: Mapping[str, str]

    @property
    def judge(self) -> str:
        """The name of the judge."""
        return self.facts.model


def read_stored(
    folder: Path, outcomes: Sequence[Outcome], rubric: Rubric, image: bool = True
) -> list[StoredMarks]:
    """Read the ratings of all judges of a run by this rubric, earliest first.

    Ratings of changed answers and of repeated calls are left out.
    """
    task = make_judging(read_facts(folder).task, outcomes, image=image, rubric=rubric)
    found = []
    for path in sorted((folder / JUDGES).glob("*/run.json")):
        facts = read_facts(path.parent)
        if facts.wording or dict(facts.prompts) != dict(task.prompts) or not facts.finished:
            continue
        said = read_outcomes(path.parent, task)
        marks = read_marks(said, rubric.qualities)
        if not any(marks.values()):
            continue
        shown = find_served(path.parent)
        setup = JudgeSetup(
            facts.model, facts.identity, rubric.prompt.hash, rubric.name, image, shown
        )
        reasons = {
            o.item.id: str(o.value.get("reason", "")) for o in said if isinstance(o.value, dict)
        }
        found.append(StoredMarks(path.parent, facts, setup, marks, reasons))
    return sorted(found, key=lambda one: (one.facts.started, one.facts.model))


def need_stored(folder: Path, found: Sequence[StoredMarks]) -> None:
    """Raise an error if no judge has rated a run."""
    if not found:
        raise InputError(
            f"no judge has rated {folder} by this rubric",
            hint=f"rate it first: memantics judge {folder} --model MODEL",
        )
