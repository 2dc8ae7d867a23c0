"""``memantics pun``: read a caption aloud and say what it may mean."""

from __future__ import annotations

from io import StringIO
from pathlib import Path
from typing import Annotated

from rich.padding import Padding

from memantics.actions import phonetics
from memantics.cli.expose import spread
from memantics.cli.terminal import console, plain, print_json, read_input
from memantics.core.errors import InputError
from memantics.core.parameters import Argument, Flag

Captions = Annotated[
    list[str] | None, Argument("Captions; - reads them from standard input, one a line.")
]
Description = Annotated[
    str | None, Flag("What the picture shows: evidence for the literal reading.")
]
SoundModel = Annotated[
    phonetics.ModelName,
    Flag("Chinese language model; auto takes the best that is installed.", "--lm"),
]
Threshold = Annotated[
    float, Flag("From which confidence a reading counts as meant.", min=0.0, max=1.0)
]
Measure = Annotated[
    Path | None,
    Flag("Measure on a PunMemeCN release instead of reading captions.", "--evaluate"),
]
Groups = Annotated[
    str,
    Flag("With --evaluate: measure on train, test or groups such as 1-100,205 only."),
]


@spread
def read_puns(
    captions: Captions = None,
    description: Description = None,
    language: Annotated[phonetics.Spoken, Flag("Language of the captions.")] = "auto",
    model: SoundModel = "auto",
    limit: Annotated[int, Flag("How many readings to give.", min=1, max=50)] = 5,
    threshold: Threshold = 0.5,
    measure: Measure = None,
    groups: Groups = "",
    as_json: Annotated[bool, Flag("Print JSON instead of lines.", "--json")] = False,
) -> None:
    """Say what captions may mean when they are read aloud."""
    if measure is not None:
        if captions:
            raise InputError("captions and --evaluate do not go together", hint="give one of them")
        console().print(
            plain(phonetics.format_figures(phonetics.score_readings(measure, model, groups)))
        )
        return
    if groups:
        raise InputError("--groups restricts --evaluate", hint="give --evaluate DIR too")
    given = captions or []
    lines = [
        line for text in given for line in (StringIO(read_input()) if text == "-" else (text,))
    ]
    if not lines:
        raise InputError("no caption was given", hint='such as memantics pun "蒸多鱼"')
    settings = phonetics.Settings(language=language, model=model, limit=limit, threshold=threshold)
    found = phonetics.read_captions([line.rstrip("\n") for line in lines], description, settings)
    if as_json:
        print_json(found)
        return
    for heard in found:
        _show(heard)


def _show(heard: phonetics.Heard) -> None:
    """The verdict, then what supports it; other readings only where one is meant."""
    head, *rest = phonetics.explain(heard, alternatives=0)
    out = console()
    out.print(plain(head, "bold" if heard.meant else ""))
    for line in rest:
        if heard.meant or not line.startswith("span: "):
            out.print(Padding(plain(line), (0, 0, 0, 2)))
    if heard.meant and len(heard.readings) > 1:
        others = ", ".join(reading.text for reading in heard.readings[1:])
        out.print(Padding(plain(f"or: {others}", "dim"), (0, 0, 0, 2)))
