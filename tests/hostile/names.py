"""Names of files, models, options and keys that speak to a terminal, or are no text at all."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.hostile.cases import Case

PIECES = (
    *("\x1b]0;PWNED\x07", "\x1b[2J", "\x1b[38;5;201m", "\x1b]8;;http://x/\x1b\\", "\x1bP1$r\x1b\\"),
    *("\x9b31m", "\x9d0;PWNED\x9c", "\x07", "\x08\x08\x08", "\r", "\n", "\x7f", "\x0b", "\x1b"),
    *("\u202e", "\u2066", "\u200b", "\ufeff", "\u2028", "\udcff\udcfe", "\udce9t\udce9"),
    *("[red]", "[/]", "{0}", "%s", "$(id)", "`id`", "'\"", "-", "..", "表情包", "é" * 200),
)
# Every command that takes a name; {} is where it goes.
COMMANDS = (
    "run {} -m fake/keys",
    "run mquest -m {}",
    "run mquest -m recorded/{}",
    "run mquest -m fake/keys --set {}=1",
    "run mquest -m fake/keys --split {}",
    "run mquest -m fake/keys --invalid {}",
    "run mquest -m openai/x --base-url {}",
    "score {}",
    "report {}",
    "compare {} {}",
    "audit {}",
    "audit mquest --published {}",
    "collect {} --no-page",
    "gallery {}",
    "human-eval export {}",
    "human-eval score {}",
    "export-inspect {}",
    "analyze {}",
    "reappraise {}",
    "reappraise {} --editor diffusers/{} --face {}",
    "pun {}",
    "publish {} --name x --licence CC0-1.0",
    "data add mquest {}",
    "data check {}",
    "data stats {}",
    "annotate import {}",
    "annotate restore {} --db fresh.db",
    "detector predict {} word",
    "detector explain {} word",
    "detector eval {}",
    "detector train --data {}",
    "kb import {}",
    "kb query {}",
    "kb show {}",
    "kb stats --store {}",
    "build knowledge {} -m fake/builder",
    "build intents {} -m fake/drafter",
    "build captions {} -m fake/drafter",
    "build questions {} -m fake/builder",
    "build sample {}",
    "build chats {} -m fake/drafter",
    "build chat-quality {}",
    "build hard-negatives {}",
    "build regenerate {}",
    "build reappraisal {}",
    "edit {} --mode masked",
    "edit mer_bench --data sample --limit 1 --out copy --editor {}",
    "edit mer_bench --data sample --limit 1 --mode masked --editor none --out copy --as {}",
    "paper {}",
    "paper mquest --data sample {}",
    "paper mquest --data sample --annotations {}",
    "paper mquest --data sample --traits {}",
    "paper punmemecn --data sample --detectors {}",
    "paper punmemecn --data sample --statistics {}",
    "audit-reasoning {}",
    "import-answers {} --task mquest/qa --model x",
    "import-answers pyproject.toml --task {} --model x",
    "annotate texts {}",
    "annotate apply-texts {} {}",
    "annotate errors {}",
    "classifier train {}",
    "classifier eval {}",
    "classifier predict {} word",
    "classifier explain {} word",
    "classifier use {}",
    "kb near {}",
    "detector study {}",
    "detector tune {}",
    "{}",
    "models {}",
)


def generate(seed: int, count: int) -> Iterator[Case]:
    """A name of one to three pieces, the command it goes to, and what lies under it."""
    chance = random.Random(seed)
    for number in range(count):
        name = "a" + "".join(chance.choice(PIECES) for _ in range(chance.randint(1, 3)))
        kind = chance.choice(("nothing", "file", "folder"))
        yield {"name": name, "command": COMMANDS[number % len(COMMANDS)], "there": kind}
