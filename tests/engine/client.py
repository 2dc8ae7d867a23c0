"""A run in its own process, to be killed: ``python -m tests.engine.client FOLDER URL ITEMS``.

Environment: ``TOY_MAX_BYTES`` bounds the size of files, as a full disk would.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import sys
from pathlib import Path

from memantics.core.errors import MemanticsError
from memantics.core.rundir import RunWriter
from memantics.evaluation.ask import ask
from memantics.models.cache import Cache
from memantics.models.engine import AskSettings, Progress
from memantics.models.openai import OpenAIModel
from tests.engine.toy import draw_image, facts, toy_task


async def run(folder: Path, url: str, count: int) -> Progress:
    model = OpenAIModel("toy", url)
    cache = Cache(folder / "cache.sqlite")
    try:
        with RunWriter(folder / "run", facts()) as writer:
            task = toy_task(count, draw_image(folder))
            return await ask(task, model, writer, cache, AskSettings(concurrency=8, grace=30))
    finally:
        cache.close()
        await model.close()


def main() -> int:
    folder, url, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    limit = os.environ.get("TOY_MAX_BYTES")
    if limit:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        summary = asyncio.run(run(folder, url, count))
    except KeyboardInterrupt:
        return 130
    except MemanticsError as error:
        print(error, file=sys.stderr)
        return 2
    print(summary)
    return 1 if summary.failed else 0


if __name__ == "__main__":
    sys.exit(main())
