"""``memantics decisions …``: the log of decisions, appeals, webhooks and exports."""

from __future__ import annotations

import typer

from memantics import moderation
from memantics.cli.expose import expose, make_command, save_page
from memantics.cli.terminal import console, plain, print_lines, show_table

app = typer.Typer(
    help="Log moderation decisions: record, verify, explain, appeal, export.",
    no_args_is_help=True,
)


def _stop_at_faults(done: moderation.VerifiedLog) -> None:
    if not done.sound:
        raise typer.Exit(1)


@app.command("verify")
@expose(moderation.verify_decisions, end=_stop_at_faults)
def verify(done: moderation.VerifiedLog) -> None:
    """Find changed, removed and reordered lines of the log; exit code 1 if there are any."""
    print_lines([f"line {one.seq}: {one.problem}" for one in done.faults])
    console().print(plain(f"{done.lines:,} lines, {len(done.faults):,} faults"))
    if done.sound:
        console().print(plain(f"head: {done.head}"), soft_wrap=True)


@app.command("record")
@expose(moderation.record_reviews)
def record(done: moderation.RecordedDecisions) -> None:
    """Record the decisions of reviewers from an annotation file."""
    print_lines([f"{one.id}  {one.content_id}  {one.clause}" for one in done.decisions])
    console().print(plain(f"recorded: {len(done.decisions):,}; skipped: {done.skipped:,}"))
    if done.skipped:
        console().print(plain("skipped memes have no clear answer, or were recorded before"))
    if done.images or done.images_missing:
        missing = f"; not found in --images: {done.images_missing:,}" if done.images_missing else ""
        console().print(plain(f"images kept: {done.images:,}{missing}"))


@app.command("explain")
@expose(moderation.explain_case)
def explain(done: str) -> None:
    """Write the explanation of a decision for the author of the post."""
    console().print(plain(done), soft_wrap=True)


@app.command("appeal")
@expose(moderation.appeal_decision)
def appeal(done: str) -> None:
    """Record an appeal against a decision."""
    console().print(plain(done))


@app.command("queue")
@expose(moderation.queue_appeals)
def queue(done: moderation.AppealQueue) -> None:
    """Write the open appeals as a review queue, without the first decision and its reviewer."""
    console().print(plain(f"{done.folder}: {done.items:,} items"))
    if done.images_missing:
        console().print(
            plain(
                f"{done.images_missing:,} without their image, which was not kept: add --images"
                " FOLDER, or keep images with 'decisions record --keep-images'"
            )
        )


@app.command("resolve")
@expose(moderation.resolve_appeals)
def resolve(done: moderation.ResolvedAppeals) -> None:
    """Record the outcomes of appeals; overturned ones become labels and counter-examples."""
    overturned = sum(one.overturned for one in done.outcomes)
    counts = f"overturned: {overturned:,}; upheld: {len(done.outcomes) - overturned:,}"
    console().print(plain(f"{counts}; undecided: {done.undecided:,}"))
    print_lines([f"{name}: reviewed by a person who had decided before" for name in done.refused])


@app.command("export")
@expose(moderation.export_decisions)
def export(done: moderation.ExportedStatements) -> None:
    """Export decisions as statements of reasons of the EU's transparency database."""
    print_lines([str(file) for file in done.files] or ["no restricting decision"])


@app.command("summary")
@expose(moderation.summarise_decisions, save=save_page)
def summary(done: moderation.DecisionSummary) -> None:
    """Show decisions by clause, the proportion overturned on appeal, how long appeals take."""
    show_table(done.table())


@app.command("retain")
@expose(moderation.retain_decisions)
def retain(done: moderation.Retained) -> None:
    """Delete expired texts and images and, if asked, old lines of the log."""
    console().print(plain(f"deleted: {done.contents:,} texts and images, {done.lines:,} lines"))
    console().print(plain(f"head: {done.head}"), soft_wrap=True)


@app.command("deliver")
@expose(moderation.deliver_webhooks)
def deliver(done: moderation.Delivered) -> None:
    """Send the webhooks that are due, signed with MEMANTICS_WEBHOOK_SECRET."""
    console().print(plain(f"sent: {done.sent:,}; waiting: {done.waiting:,}; dead: {done.dead:,}"))


app.command("reviewers")(make_command(moderation.measure_reviewers))
