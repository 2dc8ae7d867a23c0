"""The options of ``run``, ``score`` and ``report``, each with its help."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

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
Limit = Annotated[int | None, typer.Option(min=1, help="Ask only the first N items.")]
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
    Literal["html", "md", "csv", "json"], typer.Option("--format", help="What to write.")
]
Pictures = Annotated[bool, typer.Option(help="Put small copies of the images into the page.")]
