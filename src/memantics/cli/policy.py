"""``memantics policy …``: policy files that reviewers, models and authors of posts read."""

from __future__ import annotations

import typer

from memantics import moderation
from memantics.cli.expose import expose, save_page
from memantics.cli.progress import stop_at_failures, watch
from memantics.cli.terminal import console, plain, print_lines, show_table
from memantics.core.policy import Policy, write_policy

app = typer.Typer(
    help="Write, check and test moderation policies with numbered clauses.", no_args_is_help=True
)


@app.command("init")
@expose(moderation.init_policy, json=None)
def init(done: Policy) -> None:
    """Write a policy file to start from, with two clauses and examples."""
    console().print(plain(f"{done.name}: {len(done.clauses)} clauses"))


def _stop_at_faults(done: moderation.CheckedPolicy) -> None:
    if not done.sound:
        raise typer.Exit(1)


@app.command("check")
@expose(moderation.check_policy, end=_stop_at_faults)
def check(done: moderation.CheckedPolicy) -> None:
    """Find clauses without examples, contradictions, overlaps and undefined terms."""
    if done.findings:
        show_table(done.table())
    counted = f"{done.policy}: {done.clauses} clauses, {done.examples} examples"
    console().print(plain(f"{counted}, {len(done.findings)} findings"))


@app.command("show")
@expose(
    moderation.show_policy,
    dump=lambda done: {"name": done.name, "digest": done.digest, "policy": done},
)
def show(done: Policy) -> None:
    """Print a policy in its canonical form, with the hash of this version."""
    print_lines([*write_policy(done).splitlines(), "", f"version: {done.digest}"])


@app.command("diff")
@expose(moderation.diff_policies)
def diff(done: moderation.PolicyDifference) -> None:
    """Compare two policies clause by clause."""
    print_lines(done.lines())


def _stop_at_failed(done: moderation.PolicyTest) -> None:
    stop_at_failures(done.statuses)


@app.command("test")
@expose(
    moderation.measure_policy,
    watch=watch("policy test"),
    save=save_page,
    end=_stop_at_failed,
    first=("data", "models", "against", "samples", "flips", "attempts", "limit", "folder"),
)
def test(done: moderation.PolicyTest) -> None:
    """Let models decide memes by a policy; compare them with correct clauses and each other."""
    show_table(done.table())
    if not done.gold:
        lost = "no meme has a gold clause: add a column clause to measure agreement"
        console().print(plain(f"note: {lost}", "yellow"))
    if done.unseen:
        lost = f"{done.unseen:,} memes were decided by their text alone: no image file"
        console().print(plain(f"note: {lost}", "yellow"))
    for run in done.runs:
        for flip in run.flips:
            own = f"{flip.flipped} of {flip.own} own decisions flipped"
            others = f"{flip.others_flipped} of {flip.others} others"
            console().print(
                plain(f"{run.name}: clause {flip.clause} {flip.change}: {own}, {others}")
            )
    for one in done.comparisons:
        span = f"{one.difference:+.3f} ({one.low:+.3f} to {one.high:+.3f}), p = {one.p:.2g}"
        console().print(plain(f"{one.second} against {one.first}, {one.measure}: {span}"))
