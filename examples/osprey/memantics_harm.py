"""A function for Osprey's rules: the verdict of `memantics serve` on a text.

In a rule (SML)::

    Verdict = MemanticsHarm(text=PostText)
    RuleHarmful = Rule(when_all=[Verdict >= 0.9], description="harmful meme")
"""

from __future__ import annotations

import json
import os
from typing import Any
from urllib.request import Request, urlopen

from osprey.engine.executor.execution_context import ExecutionContext
from osprey.engine.udf.arguments import ArgumentsBase
from osprey.engine.udf.base import UDFBase

SECONDS = 10.0


class MemanticsHarmArguments(ArgumentsBase):  # type: ignore[misc]
    """The text to score."""

    text: str


class MemanticsHarm(UDFBase[MemanticsHarmArguments, float]):  # type: ignore[misc]
    """Return the probability of harm, from 0 to 1."""

    def execute(
        self,
        execution_context: ExecutionContext,  # noqa: ARG002 - Osprey's interface
        arguments: MemanticsHarmArguments,
    ) -> float:
        """Ask the service; raise ValueError for a text that cannot be scored."""
        verdict = moderate(arguments.text)
        if verdict["probability"] is None:
            raise ValueError(f"not scored: {verdict['reason']}")
        return float(verdict["probability"])


def moderate(text: str) -> dict[str, Any]:
    """Return the verdict of the service at MEMANTICS_URL."""
    url = os.environ.get("MEMANTICS_URL", "http://127.0.0.1:8080")
    headers = {"content-type": "application/json"}
    if token := os.environ.get("MEMANTICS_TOKEN"):
        headers["authorization"] = f"Bearer {token}"
    body = json.dumps({"input": text}).encode()
    asked = Request(f"{url}/v1/moderations", body, headers)  # noqa: S310 - the operator's URL
    with urlopen(asked, timeout=SECONDS) as answer:  # noqa: S310
        verdict: dict[str, Any] = json.load(answer)["results"][0]["verdicts"][0]
    return verdict
