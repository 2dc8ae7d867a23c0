"""``memantics probe``: what a model's answers rest on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from memantics.actions.asking import Asking
from memantics.actions.evaluate import Evaluation, read_settings
from memantics.actions.probe import DEFAULT_PROBES, probe_evaluation
from memantics.cli import flags
from memantics.cli.progress import wait_for
from memantics.cli.terminal import print_json, show_table

Probes = Annotated[
    list[str] | None,
    typer.Option(
        "--probe",
        metavar="WHAT=HOW",
        help="What to change, may be repeated: picture=swapped|blank, caption=removed|reworded, "
        "options=permuted, memory=caption|id|template. Default: the first of each, and blank.",
    ),
]


@flags.asks_models()
def probe(
    name: Annotated[str, typer.Argument(help="NAME/TASK.")],
    model: flags.Models,
    probes: Probes = None,
    rewordings: flags.Rewordings = None,
    data: flags.Data = None,
    split: flags.Split = None,
    limit: flags.Limit = None,
    sample: flags.Sample = None,
    seed: flags.Seed = None,
    option: flags.Options = None,
    out: flags.Out = Path("runs"),
    *,
    asking: Asking,
    as_json: flags.AsJson = False,
) -> None:
    """Say what answers rest on: change picture, caption or options, and compare with the plain run.

    Differences are paired by item and clustered by meme. memory=… asks what a model knows by heart.
    """
    wanted = Evaluation(
        [name],
        model,
        data=data,
        split=split,
        limit=limit,
        sample=sample,
        seed=seed,
        options=read_settings("--set", option),
        out=out,
        asking=asking,
        rewordings=rewordings,
    )
    found = wait_for(probe_evaluation(wanted, probes or DEFAULT_PROBES))
    if as_json:
        print_json(found.to_dict())
    else:
        show_table(found.table())
