"""``memantics prompts``: what a task sends, and its prompt files to change."""

from __future__ import annotations

from pathlib import Path

import typer

from memantics.actions import prompts as action
from memantics.cli.expose import expose
from memantics.cli.terminal import print_data, print_lines, tell

app = typer.Typer(help="What a task sends, and its prompt files to change.", no_args_is_help=True)


@app.command("show")
@expose(action.show_prompt, hide=("invalid",))
def show(shown: action.ShownPrompt) -> None:
    """Print what would be sent about an item, word for word; no model is asked."""
    tell(shown.head)
    print_data(shown.text + "\n")


@app.command("copy")
@expose(action.copy_prompts, hide=("invalid", "limit", "sample", "seed"))
def copy(done: action.CopiedPrompts, task: str, folder: Path) -> None:
    """Copy the prompt files that a task uses, to change them and run with --prompts."""
    print_lines([str(done.folder / f"{name}.md") for name in done.copied])
    if done.kept:
        tell(f"{len(done.kept)} files were there already and stay: {', '.join(done.kept)}")
    print_lines([f"next: memantics run {task} --prompts {folder} --model MODEL"])
