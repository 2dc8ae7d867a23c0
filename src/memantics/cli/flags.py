"""Options that several commands share, each with its help, and those of asking a model at once.

A command that asks models takes one parameter ``asking: Asking`` and is decorated::

    @asks_models()                      # or @asks_models(concurrency=8, price=False)
    def reappraise(images: Images, asking: Asking, as_json: flags.AsJson = False) -> None:

Its users then have ``--base-url``, ``--param``, ``--concurrency``, ``--timeout``, ``--price`` and
``--no-cache``.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import typer

from memantics.actions.asking import Asking, ModelSettings, read_pairs, read_price

Tasks = Annotated[list[str], typer.Argument(help="NAME, NAME/TASK, or suite for all.")]
Folders = Annotated[list[Path], typer.Argument(help="Run directories.")]
Models = Annotated[
    list[str],
    typer.Option("--model", "-m", help="KIND/NAME, may be repeated. See 'memantics models list'."),
]
Data = Annotated[
    Literal["starter", "release"] | None,
    typer.Option(help="Which data. Default: a registered release, else the starter sample."),
]
Split = Annotated[str | None, typer.Option(help="A named part of the data.")]
Limit = Annotated[
    int | None, typer.Option(min=1, help="Ask only N items, in turn of each language and kind.")
]
FewMemes = Annotated[
    int | None, typer.Option("--limit", min=1, help="Take only the first N memes.")
]
Sample = Annotated[
    int | None,
    typer.Option(min=1, help="Ask a random sample of N items; memes are kept whole."),
]
Seed = Annotated[int | None, typer.Option(help="The seed of the sample. Default: 0.")]
Options = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=VALUE", help="Choose an option of a task."),
]
Grid = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="[TASK:]OPTION=VALUE[,VALUE…]",
        help="Choose an option of a task; several values make a run of each combination.",
    ),
]
Captioner = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL", help="Who describes images for tasks that need it. Default: the model."
    ),
]
DryRun = Annotated[
    bool,
    typer.Option("--dry-run", help="Say how many calls and tokens it would take; send nothing."),
]
Invalid = Annotated[
    str | None,
    typer.Option(help="Refused and unparsed answers: wrong, drop, retry:N or retry:N,drop."),
]
Prompts = Annotated[
    Path | None,
    typer.Option(metavar="DIR", help="Prompts in the place of ours: files of the same names."),
]
Shots = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Demonstrations with images: JSON lines, shown before."),
]
Repeat = Annotated[int, typer.Option(min=1, max=100, help="Ask everything N times, by seed.")]
ScoreBy = Annotated[
    Literal["reply", "logprobs"],
    typer.Option("--score", help="Read the reply, or take the option that is likeliest."),
]
MaxTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens of an answer, without the thinking before it.")
]
ThinkingTokens = Annotated[
    int | None, typer.Option(min=1, help="Tokens for thinking, on top of the answer's.")
]
Probe = Annotated[
    str,
    typer.Option(
        metavar="WHAT=HOW",
        help="Change one thing: picture=swapped|blank, caption=removed|reworded, options=permuted, "
        "memory=caption|id|template.",
    ),
]
Rewordings = Annotated[
    Path | None,
    typer.Option(help="Captions in other words: a table with the columns image and text."),
]
Out = Annotated[Path, typer.Option(help="Where the run directories go.")]
BaseUrl = Annotated[
    str | None,
    typer.Option(help="Address of an OpenAI-compatible server. The key comes from OPENAI_API_KEY."),
]
Params = Annotated[
    list[str] | None,
    typer.Option(
        "--param",
        metavar="NAME=VALUE",
        help="A field of the request, such as max_tokens=512 or reasoning_effort=low.",
    ),
]
Concurrency = Annotated[int, typer.Option(min=1, max=4096, help="Calls in flight at most.")]
Timeout = Annotated[float, typer.Option(min=0.1, help="Seconds for one call.")]
Price = Annotated[
    str | None,
    typer.Option(metavar="IN,OUT", help="Price of a million tokens in and out, for the cost."),
]
NoCache = Annotated[bool, typer.Option("--no-cache", help="Ask again even what is in the cache.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Page = Annotated[
    Path | None,
    typer.Option(help="File to write. Default: report.html; other formats go to the terminal."),
]
Format = Annotated[
    str,
    typer.Option("--format", help="What to write: html, md, csv, json, or an installed form."),
]
Pictures = Annotated[bool, typer.Option(help="Put small copies of the images into the page.")]


def asks_models(
    *, concurrency: int = 32, price: bool = True
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of asking a model, in the place of its parameter ``asking``."""
    shared: dict[str, tuple[object, object]] = {
        "base_url": (BaseUrl, None),
        "param": (Params, None),
        "concurrency": (Concurrency, concurrency),
        "timeout": (Timeout, 300.0),
        "price": (Price, None),
        "no_cache": (NoCache, False),
    }
    if not price:
        del shared["price"]
    options = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
        for name, (kind, default) in shared.items()
    ]

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        listed: list[inspect.Parameter] = []
        for one in inspect.signature(command).parameters.values():
            value = one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name])
            listed += options if one.name == "asking" else [value]

        @functools.wraps(command)
        def call(**given: Any) -> None:
            command(asking=_read_asking({name: given.pop(name) for name in shared}), **given)

        call.__annotations__ = {one.name: one.annotation for one in listed} | {"return": None}
        call.__signature__ = inspect.Signature(listed)  # type: ignore[attr-defined]
        return call

    return decorate


def _read_asking(given: dict[str, Any]) -> Asking:
    settings = ModelSettings(
        given["base_url"],
        given["concurrency"],
        given["timeout"],
        read_pairs("--param", given["param"]),
    )
    return Asking(settings, read_price(given.get("price")), not given["no_cache"])
