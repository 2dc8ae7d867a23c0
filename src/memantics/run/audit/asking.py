"""Ask a model what an audit wants to know; answers are kept like those of any run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from memantics.core.cache import Cache
from memantics.core.card import Card
from memantics.core.model import Model
from memantics.core.records import Form, Image, Item, Outcome, Request
from memantics.core.rundir import RunWriter, last_answers
from memantics.core.task import Task
from memantics.run.ask import AskSettings, ask
from memantics.run.audit.subject import Exam, strip_images
from memantics.run.engine import Progress
from memantics.run.facts import DataFacts, Scope, describe, folder_name

Watch = Callable[[str, int], Callable[[Progress], None]]


@dataclass(frozen=True, slots=True)
class AuditAsking:
    """Where answers go and how they are asked for.

    Every presentation is a run directory of its own below ``out``, so an audit that was stopped
    goes on where it was. ``watch`` is told what is asked and how many items there are.
    """

    card: Card
    data: DataFacts
    out: Path
    cache: Cache | None
    settings: AskSettings
    watch: Watch

    async def ask(
        self,
        exam: Exam,
        model: Model,
        items: Sequence[Item],
        mark: str,
        *,
        task: Task | None = None,
        fresh: bool = False,
    ) -> list[Outcome]:
        """What the model says to these items; ``mark`` names the presentation.

        ``fresh`` asks past the cache: a second opinion must not be the first one again.
        """
        task = task or exam.full
        prompts = {**task.prompts, "audit": mark}
        asked = replace(task, items=lambda: iter(items), prompts=prompts)
        scope = Scope(split=exam.split, limit=len(items))
        facts = describe((self.card, exam.card), asked, model, self.data, scope)
        folder = self.out / folder_name(facts)
        settings = replace(self.settings, total=len(items))
        watch = self.watch(f"{exam.name}  {model.name}  {mark}", len(items))
        with RunWriter(folder, facts) as writer:
            await ask(asked, model, writer, None if fresh else self.cache, settings, watch)
        last = last_answers(folder)
        return [
            Outcome(item, last[item.id].status, last[item.id].value, last[item.id].attempt + 1)
            for item in items
            if item.id in last
        ]

    async def ask_blind(self, exam: Exam, model: Model, items: Sequence[Item]) -> list[Outcome]:
        """What the model says to the same prompts with every image left out."""
        plain, whole = exam.full.ask, {item.id: item for item in items}

        def ask_unseeing(item: Item, complaint: str | None) -> Request:
            return drop_images(plain(whole[item.id], complaint), item.form)

        task = replace(exam.full, ask=ask_unseeing)
        return await self.ask(exam, model, [strip_images(i) for i in items], "blind", task=task)


def drop_images(request: Request, form: Form) -> Request:
    """The request without its images; ``form`` is the one without images, too."""
    messages = tuple(
        replace(message, parts=texts)
        for message in request.messages
        if (texts := tuple(part for part in message.parts if not isinstance(part, Image)))
    )
    return replace(request, messages=messages, form=form)


def keep_both(
    first: Sequence[Outcome], second: Sequence[Outcome]
) -> tuple[list[Outcome], list[Outcome]]:
    """The outcomes of items that were reached in both presentations, in one order."""
    other = {outcome.item.id: outcome for outcome in second if outcome.status != "failed"}
    kept = [outcome for outcome in first if outcome.status != "failed" and outcome.item.id in other]
    return kept, [other[outcome.item.id] for outcome in kept]
