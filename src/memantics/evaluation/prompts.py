"""``prompts``: what a task sends, and its prompt files to change."""

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
    str, Argument("NAME/TASK, or NAME where it has one task.", complete=complete_tasks)
]


@dataclass(frozen=True, slots=True)
class ShownPrompt(Result):
    """The request of one item: who says what; an image is named by its file."""

    task: str
    item: str
    turns: tuple[tuple[str, str], ...]
    files: tuple[str, ...]

    @property
    def head(self) -> str:
        """Which item of which task it is, and which prompt files it is made of."""
        return f"{self.task}, item {self.item}; prompt files: {', '.join(self.files) or 'none'}"

    @property
    def text(self) -> str:
        """What is said, word for word, under who says it."""
        return "\n\n".join(f"[{role}]\n{text}" for role, text in self.turns)


@dataclass(frozen=True, slots=True)
class CopiedPrompts(Result):
    """The prompt files of a task in a folder of the user's; those that were there stay."""

    folder: Path
    copied: tuple[str, ...]
    kept: tuple[str, ...]


def show_prompt(
    task: TaskName,
    *,
    item: Annotated[str, Flag("The id of an item. Default: the first.", metavar="ID")] = "",
    settings: TaskChoiceSettings | None = None,
) -> ShownPrompt:
    """What would be sent about an item of a task, word for word; no model is asked."""
    posed = pose_one(task, settings or TaskChoiceSettings())
    if posed.task.needs:
        raise InputError(
            f"the requests of {task} hold answers of {posed.task.needs[0].task}",
            hint="leave out the options that ask for these",
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
    raise InputError(f"{posed.task.name} has no item {wanted!r}", hint="leave --item out")


def _show(part: MessagePart) -> str:
    return part if isinstance(part, str) else f"<image {part.path.name}>"


def copy_prompts(
    task: TaskName,
    folder: Annotated[Path, Argument("A folder for the files.")],
    *,
    settings: TaskChoiceSettings | None = None,
) -> CopiedPrompts:
    """Copy the prompt files that a task uses, to change them and run with ``--prompts FOLDER``."""
    posed = pose_one(task, settings or TaskChoiceSettings(), unseen=True)
    ref = find_tasks([posed.task.name])[0]
    known = read_prompts(ref.benchmark.home / "prompts")
    used = [name for name in posed.task.prompts if name in known]
    if not used:
        raise InputError(f"{task} is asked without prompt files", hint="see its benchmark's page")
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
