"""``memantics probe``: what a model's answers rest on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from memantics.actions.desk import Asking, make_asking
from memantics.actions.evaluate import Evaluation, Scope, Variation, read_settings
from memantics.actions.options import AskedModels
from memantics.actions.probe import DEFAULT_PROBES, probe_evaluation
from memantics.cli.expose import AsJson, spread
from memantics.cli.progress import wait_for
from memantics.cli.terminal import print_json, show_table
from memantics.core.parameters import Argument, Flag, MadeBy, Rewordings


@spread
def probe(
    name: Annotated[str, Argument("NAME/TASK.")],
    model: AskedModels,
    probes: Annotated[
        Sequence[str],
        Flag(
            "What to change, may be repeated: picture=swapped|blank, "
            "caption=removed|reworded|shuffled, meme=removed, options=permuted, "
            "memory=caption|id|template|canary. Default: picture=swapped and blank, "
            "caption=removed, options=permuted.",
            "--probe",
            metavar="WHAT=HOW",
        ),
    ] = (),
    rewordings: Rewordings = None,
    scope: Scope = Scope(),  # noqa: B008 - frozen
    option: Annotated[
        list[str] | None,
        Flag("Choose an option of a task.", "--set", metavar="OPTION=VALUE"),
    ] = None,
    out: Annotated[Path, Flag("Where the run directories go.")] = Path("runs"),
    *,
    asking: Annotated[Asking, MadeBy(make_asking)],
    as_json: AsJson = False,
) -> None:
    """Say what answers rest on: change picture, caption or options, and compare with the plain run.

    Differences are paired by item and clustered by meme. memory=… asks what a model knows by heart.
    """
    wanted = Evaluation(
        [name],
        model,
        scope,
        read_settings("--set", option),
        out,
        asking=asking,
        variation=Variation(rewordings=rewordings),
    )
    found = wait_for(probe_evaluation(wanted, probes or DEFAULT_PROBES))
    if as_json:
        print_json(found.to_dict())
    else:
        show_table(found.table())
