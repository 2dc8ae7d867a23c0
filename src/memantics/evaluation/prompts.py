"""Show the request that a task sends, and copy its prompt files for editing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from memantics.benchmarks.registry import find_tasks
from memantics.core.errors import InputError
from memantics.core.files import replace_file
from memantics.core.parameters import Argument, Flag
from memantics.core.prompt import read_prompts
from memantics.core.records import MessagePart, Request
from memantics.core.result import Result
from memantics.evaluation.answers import TaskChoiceSettings, pose_one
from memantics.evaluation.options import complete_tasks
from memantics.evaluation.run import PosedTask

TaskName = Annotated[
    str, Argument("NAME/TASK, or NAME if the benchmark has one task.", complete=complete_tasks)
]


@dataclass(frozen=True, slots=True)
class ShownPrompt(Result):
    """The request of one item, with role and content; images are given by file name."""

    task: str
    item: str
    turns: tuple[tuple[str, str], ...]
    files: tuple[str, ...]

    @property
    def head(self) -> str:
        """The task, the item and the prompt files, in one text."""
        return f"{self.task}, item {self.item}; prompt files: {', '.join(self.files) or 'none'}"

    @property
    def text(self) -> str:
        """The messages of the request as text, each under its role."""
        return "\n\n".join(f"[{role}]\n{text}" for role, text in self.turns)


@dataclass(frozen=True, slots=True)
class CopiedPrompts(Result):
    """The prompt files of a task in a user's folder; existing files are kept."""

    folder: Path
    copied: tuple[str, ...]
    kept: tuple[str, ...]


def show_prompt(
    task: TaskName,
    *,
    item: Annotated[str, Flag("Item id. Default: the first item.", metavar="ID")] = "",
    settings: TaskChoiceSettings | None = None,
) -> ShownPrompt:
    """Show the request for one item of a task, without calling a model."""
    posed = pose_one(task, settings or TaskChoiceSettings())
    if posed.task.needs:
        raise InputError(
            f"the requests of {task} contain answers to the task {posed.task.needs[0].task}",
            hint="remove the options that use these answers",
        )
    request = _find_request(posed, item)
    turns = tuple(
        (message.role, "\n".join(_show(part) for part in message.parts))
        for message in request[1].messages
    )
    return ShownPrompt(posed.task.name, request[0], turns, tuple(posed.task.prompts))


def _find_request(posed: PosedTask, wanted: str) -> tuple[str, Request]:
    for found in posed.task.items():
        if not wanted or found.id == wanted:
            complete = posed.task.complete
            return found.id, posed.task.ask(complete(found) if complete else found, None)
    raise InputError(
        f"{posed.task.name} has no item {wanted!r}", hint="omit --item for the first item"
    )


def _show(part: MessagePart) -> str:
    return part if isinstance(part, str) else f"<image {part.path.name}>"


def copy_prompts(
    task: TaskName,
    folder: Annotated[Path, Argument("Output folder for the prompt files.")],
    *,
    settings: TaskChoiceSettings | None = None,
) -> CopiedPrompts:
    """Copy the prompt files of a task for editing; use them with ``run --prompts FOLDER``."""
    posed = pose_one(task, settings or TaskChoiceSettings(), unseen=True)
    ref = find_tasks([posed.task.name])[0]
    known = read_prompts(ref.benchmark.home / "prompts")
    used = [name for name in posed.task.prompts if name in known]
    if not used:
        raise InputError(
            f"{task} uses no prompt files", hint="see the page of its benchmark in docs/reference"
        )
    place = folder / ref.benchmark.card.name
    copied, kept = [], []
    for name in used:
        path = place / f"{name}.md"
        if path.exists():
            kept.append(name)
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, (known[name].text + "\n").encode(), "prompt")
        copied.append(name)
    return CopiedPrompts(place, tuple(copied), tuple(kept))
