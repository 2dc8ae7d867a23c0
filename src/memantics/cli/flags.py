"""The flag of detectors' and experts' commands, which are not yet made of their actions."""

from __future__ import annotations

from typing import Annotated

import typer

from memantics.cli.expose import AS_JSON

AsJson = Annotated[bool, typer.Option("--json", help=AS_JSON)]
