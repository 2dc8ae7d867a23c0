"""``memantics pun``: read a caption aloud and say what it may mean."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer
from rich.padding import Padding

from memantics.cli.terminal import console, plain, print_json
from memantics.core.errors import InputError
from memantics.phonetics import Readings, Settings, evaluate, explain, format_figures, read_many

Captions = Annotated[
    list[str] | None, typer.Argument(help="Captions; - reads them from standard input, one a line.")
]
Description = Annotated[
    str | None, typer.Option(help="What the picture shows: evidence for the literal reading.")
]
SoundModel = Annotated[
    Literal["auto", "trigram", "frequencies", "dictionary"],
    typer.Option("--lm", help="Chinese language model; auto takes the best that is installed."),
]
Spoken = Annotated[Literal["auto", "zh", "en"], typer.Option(help="Language of the captions.")]
Limit = Annotated[int, typer.Option(min=1, max=50, help="How many readings to give.")]
Threshold = Annotated[
    float, typer.Option(min=0.0, max=1.0, help="From which confidence a reading counts as meant.")
]
Measure = Annotated[
    Path | None,
    typer.Option("--evaluate", help="Measure on a PunMemeCN folder instead of reading captions."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of lines.")]


def read_puns(
    captions: Captions = None,
    description: Description = None,
    language: Spoken = "auto",
    model: SoundModel = "auto",
    limit: Limit = 5,
    threshold: Threshold = 0.5,
    measure: Measure = None,
    as_json: AsJson = False,
) -> None:
    """Say what captions may mean when they are read aloud."""
    if measure is not None:
        if captions:
            raise InputError("captions and --evaluate do not go together", hint="give one of them")
        console().print(plain(format_figures(evaluate(measure, model))))
        return
    lines = _lines(captions or [])
    settings = Settings(language=language, model=model, limit=limit, threshold=threshold)
    found = list(read_many(((line, description) for line in lines), settings=settings))
    if as_json:
        print_json([readings.to_json() for readings in found])
        return
    for readings in found:
        _show(readings)


def _lines(captions: list[str]) -> list[str]:
    lines = [
        line.rstrip("\n")
        for caption in captions
        for line in (sys.stdin if caption == "-" else (caption,))
    ]
    if not lines:
        raise InputError("no caption was given", hint='such as memantics pun "蒸多鱼"')
    return lines


def _show(readings: Readings) -> None:
    """The verdict, then what supports it; other readings only where one is meant."""
    head, *rest = explain(readings, alternatives=0)
    out = console()
    out.print(plain(head, "bold" if readings.meant else ""))
    for line in rest:
        if readings.meant or not line.startswith("span: "):
            out.print(Padding(plain(line), (0, 0, 0, 2)))
    if readings.meant and len(readings.readings) > 1:
        others = ", ".join(reading.text for reading in readings.readings[1:])
        out.print(Padding(plain(f"or: {others}", "dim"), (0, 0, 0, 2)))
