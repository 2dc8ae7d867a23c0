"""Swapping detectors while the service runs: ``POST /v1/detectors/reload``, or SIGHUP."""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable

from fastapi import APIRouter, FastAPI, Request
from pydantic import BaseModel

from memantics.core.errors import MemanticsError
from memantics.serve.context import find_service
from memantics.serve.refusals import ERRORS
from memantics.web.logs import note

router = APIRouter(tags=["moderation"])


class Reloaded(BaseModel):
    """Whose verdicts are given from now on; other processes of the service follow in a moment."""

    detector: str
    detectors: list[str]


@router.post("/v1/detectors/reload", operation_id="reload_detectors", responses=ERRORS)
async def reload(request: Request) -> Reloaded:
    """Open the files of the detectors again; requests in hand are answered by the old ones."""
    service = find_service(request)
    service.gate.admit(request, "reload")
    await _reload(request.app)
    parent = multiprocessing.parent_process()
    if parent is not None and parent.pid is not None and service.settings.workers > 1:
        os.kill(parent.pid, signal.SIGHUP)  # which tells all processes
    moderator = service.engine.moderator
    names = [detector.version for detector in moderator.detectors]
    return Reloaded(detector=moderator.name, detectors=names)


async def _reload(app: FastAPI) -> None:
    name = await asyncio.to_thread(app.state.service.engine.reload)
    app.state.reopened()
    note("reloaded", detector=name)


def listen(app: FastAPI, reopened: Callable[[], None]) -> None:
    """Reload at SIGHUP; ``reopened`` is called after each reload."""
    app.state.reopened = reopened
    if threading.current_thread() is not threading.main_thread():
        return
    waiting: set[asyncio.Task[None]] = set()

    async def follow() -> None:
        try:
            await _reload(app)
        except MemanticsError as error:
            note("not reloaded", kind=type(error).__name__)

    def start() -> None:
        task = asyncio.create_task(follow())
        waiting.add(task)
        task.add_done_callback(waiting.discard)

    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, start)
