"""``memantics reappraise`` and ``build reappraisal``: memes with a kinder feeling about them."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, TypedDict

import typer

from memantics.actions import reappraise as action
from memantics.actions.asking import Asking, read_pairs
from memantics.actions.progress import Progress
from memantics.actions.reappraise import EMBEDDED, Reappraisal, ReappraisalDrafts
from memantics.cli import flags
from memantics.cli.build import BuildOut, Folder
from memantics.cli.progress import watching
from memantics.cli.reviewing import review_in_terminal
from memantics.cli.terminal import console, plain, print_json, print_lines, show_table, tell
from memantics.core.errors import InputError
from memantics.core.result import Table

Images = Annotated[list[Path], typer.Argument(help="Image files, or folders of memes.")]
Wanted = Annotated[
    Literal["happy", "calm", "relaxed", "excited"] | None,
    typer.Option("--target", help="The new emotion. Default: the counterpart of the meme's own."),
]
ModelName = Annotated[
    str,
    typer.Option("--model", "-m", help="Who plans: KIND/NAME, or our lexicon, a baseline."),
]
EditorName = Annotated[
    str,
    typer.Option(
        "--editor",
        "-e",
        help="Who repaints: embedded (light, colours, sticker), none (captions only), "
        "openai-images/NAME or diffusers/PATH.",
    ),
]
EditorUrl = Annotated[
    str | None, typer.Option(help="Address of an image-edit server. Default: OPENAI_BASE_URL.")
]
Negative = Annotated[
    Path | None,
    typer.Option(help="What people said by the workflow find-emotions: only clear cases go on."),
]
EditorParams = Annotated[
    list[str] | None,
    typer.Option("--editor-param", metavar="NAME=VALUE", help="A setting of the editor."),
]
Sticker = Annotated[
    bool | None,
    typer.Option("--sticker/--no-sticker", help="Embedded editor: add a sticker. Default: yes."),
]
Face = Annotated[
    list[str] | None,
    typer.Option(
        "--face",
        metavar="WHERE",
        help="Let --editor repaint faces alone: X,Y,W,H in pixels (may be repeated), 'model' to ask"
        " --model, or the file of a YuNet detector (.onnx).",
    ),
]
Interactive = Annotated[
    bool, typer.Option("--interactive", "-i", help="Accept, edit or skip each stage yourself.")
]
BestOf = Annotated[
    int,
    typer.Option(
        min=1, max=16, help="Plans that the model makes; the best by judge and layout is taken."
    ),
]
MoodCheck = Annotated[
    bool,
    typer.Option(
        "--mood/--no-mood", help="Ask the model whether faces go with the new captions: a call."
    ),
]
Place = Annotated[Path, typer.Option(help="Where the folders of the memes go.")]


Editors = Annotated[
    list[str] | None,
    typer.Option("--editor", "-e", help="Who repaints; may be repeated. Default: embedded."),
]


class Reach(TypedDict):
    """How models and editors are reached, as actions take it."""

    asking: Asking
    progress: Callable[[Progress], None]
    editor_url: str | None
    editor_params: Mapping[str, str]


def reach_editor(
    asking: Asking,
    progress: Callable[[Progress], None],
    url: str | None,
    params: Sequence[str] | None,
) -> Reach:
    """The options of actions that the flags of editors give."""
    given = read_pairs("--editor-param", params)
    return {"asking": asking, "progress": progress, "editor_url": url, "editor_params": given}


@flags.asks_models(concurrency=8)
def reappraise(
    images: Images,
    asking: Asking,
    target: Wanted = None,
    model: ModelName = EMBEDDED,
    editor: EditorName = "embedded",
    out: Place = Path("reappraised"),
    interactive: Interactive = False,
    sticker: Sticker = None,
    best_of: BestOf = 1,
    mood: MoodCheck = True,
    face: Face = None,
    editor_url: EditorUrl = None,
    editor_param: EditorParams = None,
    as_json: flags.AsJson = False,
) -> None:
    """Turn negative memes around: captions rewritten in place, panels and layout kept."""
    if interactive and not sys.stdin.isatty():
        raise InputError("--interactive needs a terminal", hint="edit plan.json in --out instead")
    with watching("reappraise", asking.prices) as show_progress:
        results = action.reappraise(
            images,
            target=target,
            model=model,
            editor=editor,
            out=out,
            review=review_in_terminal if interactive else None,
            sticker=sticker,
            best_of=best_of,
            mood=mood,
            face=face or (),
            **reach_editor(asking, show_progress, editor_url, editor_param),
        )
    _show(results, model, as_json=as_json)
    _end(results)


@flags.asks_models(concurrency=8)
def build_reappraisal(
    asking: Asking,
    folder: Folder = None,
    model: ModelName = EMBEDDED,
    editor: Editors = None,
    out: BuildOut = None,
    limit: flags.FewMemes = None,
    verdicts: Negative = None,
    best_of: BestOf = 1,
    mood: MoodCheck = True,
    face: Face = None,
    editor_url: EditorUrl = None,
    editor_param: EditorParams = None,
    as_json: flags.AsJson = False,
) -> None:
    """Turn every meme of a folder around with one or more editors; people check the drafts."""
    with watching("reappraise", asking.prices) as show_progress:
        made = action.reappraisal(
            folder,
            editors=editor or (),
            out=out,
            limit=limit,
            verdicts=verdicts,
            model=model,
            best_of=best_of,
            mood=mood,
            face=face or (),
            **reach_editor(asking, show_progress, editor_url, editor_param),
        )
    _show_drafts(made, as_json=as_json)
    if any(count["failed"] for count in made.counts.values()):
        raise typer.Exit(1)


def _show(results: Sequence[Reappraisal], model: str, *, as_json: bool) -> None:
    if as_json:
        print_json([result.to_dict() for result in results])
        return
    out, shown = console(), action.tabulate_results(results)
    if shown.rows:
        show_table(shown)
        print_lines(action.tell_sources(results))
    for result in results:
        if result.status != "done" and not action.none_read(results):
            out.print(plain(f"{result.meme}: {result.stage} {result.status}: {result.reason}"))
    done = [result for result in results if result.status == "done"]
    if done:
        notes: dict[str, list[str]] = {}
        for one in done:
            for note in one.checks.notes if one.checks else ():
                notes.setdefault(note, []).append(one.meme)
        for note, memes in notes.items():
            of_all = len(memes) == len(done)
            out.print(plain(note if of_all else f"{', '.join(memes)}: {note}", "dim"))
        by = " Planned by our lexicon, a baseline." if model == EMBEDDED else ""
        declined = sum(result.status == "declined" for result in results)
        left = f", {declined} declined" if declined else ""
        out.print(plain(f"{len(done)} of {len(results)} done{left}: {done[0].folder.parent}.{by}"))


def _end(results: Sequence[Reappraisal]) -> None:
    failed = [result for result in results if result.status == "failed"]
    if failed and action.none_read(results):
        for result in failed:
            tell(f"error: {result.reason}")
        raise typer.Exit(2)
    if failed:
        raise typer.Exit(1)


def _show_drafts(made: ReappraisalDrafts, *, as_json: bool) -> None:
    counts = made.counts
    if as_json:
        facts = {"folder": str(made.folder), "drafts": len(made.drafts), "editors": counts}
        print_json(facts | {"left_out": dict(made.left_out)})
        return
    columns = ("done", "declined", "failed")
    rows = tuple((name, *(str(group[each]) for each in columns)) for name, group in counts.items())
    show_table(Table(("editor", *(f">{each}" for each in columns)), rows))
    out = console()
    for name, results in made.made.items():
        for result in [r for r in results if r.status in ("failed", "declined")][:5]:
            out.print(plain(f"{name} {result.meme}: {result.status}: {result.reason}"[:300]))
    for reason, count in Counter(made.left_out.values()).items():
        out.print(plain(f"left out, {reason}: {count}"))
    out.print(plain(f"{len(made.drafts)} drafts; for people to check: {made.queue}"))
