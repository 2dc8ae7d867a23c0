"""``memantics annotate``: the annotation app, imports, exports, accounts, and queue commands.

The commands that write annotation queues are ``questionnaire``, ``texts``, ``apply-texts`` and
``errors``.
"""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import typer

from memantics import annotation, construction
from memantics.cli.expose import expose, make_default_group
from memantics.cli.terminal import console, plain, print_lines, say


@expose(construction.make_questionnaire, json=None)
def make_questionnaire(done: construction.MadeQueue) -> None:
    """Write a questionnaire for annotators (consent, demographics), separate from annotations."""
    _show(done, "forms", " --db people.db")


@expose(construction.make_text_queue, json=None)
def make_texts(done: construction.MadeQueue) -> None:
    """Write the OCR texts of memes as a queue for correction."""
    _show(done, "texts")


@expose(construction.apply_texts, json=None)
def apply_texts(done: construction.AppliedTexts) -> None:
    """Write the texts that annotators corrected into the list of memes of a folder."""
    told = f"{done.changed} texts changed, {done.unreadable} memes marked unreadable"
    console().print(plain(f"{done.folder}: {told}"))


@expose(construction.make_error_queue, json=None)
def make_errors(done: construction.MadeQueue) -> None:
    """Write the items that most runs answered wrong as an annotation queue for error analysis."""
    _show(done, "items")


def _show(done: construction.MadeQueue, what: str, more: str = "") -> None:
    """Print the next command with 'annotate open'; a folder may be named like a subcommand."""
    where = f"{done.folder}; next: memantics annotate open {done.folder}{more}"
    console().print(plain(f"{done.items} {what}: {where}"), soft_wrap=True)


FIRST = "open"
app = typer.Typer(
    cls=make_default_group(FIRST),
    help="Annotate memes in the browser. 'annotate QUEUE' opens a queue in the web app.",
)
app.command("questionnaire")(make_questionnaire)
app.command("texts")(make_texts)
app.command("apply-texts")(apply_texts)
app.command("errors")(make_errors)


def _show_start(start: annotation.AppStart) -> None:
    for done in start.imported:
        print_lines(done.lines())
    out = console()
    out.print(plain("Open this link in a browser. It logs you in once and expires after one hour:"))
    say(f"  {start.link}")  # the line is not wrapped, so that the command can be copied
    after = "the demo data is deleted" if start.demo else "all saved answers are kept"
    out.print(plain(f"Stop with Ctrl+C; {after}."))


@app.command(FIRST)
@expose(
    annotation.serve_annotations,
    json=None,
    watch=lambda: nullcontext({"started": _show_start}),
    first=("database", "media", "workflow", "annotators_per_item", "limit", "demo"),
)
def open_app(_: None) -> None:
    """Start the web app; open the given queues as projects."""


@app.command("import")
@expose(annotation.import_annotations, json=None)
def take_in(done: annotation.ImportSummary) -> None:
    """Import a queue, memes or Label Studio tasks without starting the web app."""
    print_lines(done.lines())


@app.command("setup")
@expose(annotation.set_up_project)
def set_up(settings: dict[str, object]) -> None:
    """Show or change the settings of a project, such as the number of annotators per item."""
    print_lines(f"{name}: {value}" for name, value in settings.items() if value != "")


@app.command("export")
@expose(annotation.export_annotations, json=None, first=("out",))
def hand_out(_: None, what: str, project: int, out: Path) -> None:
    """Export the annotations or the data of a project to a file."""
    console().print(plain(f"{what} of project {project}: {out}"))


@app.command("guideline")
@expose(annotation.grow_guideline)
def grow_guideline(state: annotation.GuidelineState) -> None:
    """List items on which annotators disagree; draft or add a rule of the guideline."""
    print_lines(state.lines())


@app.command("password")
@expose(annotation.reset_password, json=None)
def give_password(new: str, name: str) -> None:
    """Set and print a new password of an account; end its sessions and reopen it if closed."""
    console().print(plain(f"new password of {name}: {new} (change it under Settings)"))


@app.command("close")
@expose(annotation.close_account, json=None)
def close_account(_: None, name: str) -> None:
    """Close an account: it can no longer log in; its annotations are kept."""
    console().print(plain(f"closed: {name}; reopen it with 'annotate password {name}'"))


@app.command("backup")
@expose(annotation.back_up, json=None)
def back_up(done: annotation.BackupSummary) -> None:
    """Back up database and images to one file, also while the app is running."""
    _show_backup("backup", done)


@app.command("restore")
@expose(annotation.restore_backup, json=None)
def bring_back(done: annotation.BackupSummary) -> None:
    """Restore a backup into an empty database."""
    _show_backup("restored", done)


def _show_backup(verb: str, done: annotation.BackupSummary) -> None:
    held = f"{done.answers:,} answers, {done.images:,} images"
    console().print(plain(f"{verb}: {done.file} ({held})"))
