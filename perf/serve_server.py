"""``python -m perf.serve_server KIND FOLDER``: start one of the compared servers.

``ours`` is the service with all the time in the world, ``usual`` the service as it is, ``narrow``
has room for four waiting items, ``live`` answers by ``live.zip`` of the folder, and ``bare`` is an
endpoint of the same framework that decodes the same body and does nothing. Each prints its port and
serves until it is stopped.
"""

from __future__ import annotations

import sys
from pathlib import Path
from socket import socket

import uvicorn
from fastapi import FastAPI

from memantics.serve.app import build_app
from memantics.serve.moderations import ModerationBody
from memantics.serve.settings import Intake, ServedModels, ServeSettings
from memantics.web.server import listen, serve

PATIENT = 600.0


KINDS = {
    "ours": Intake(deadline=PATIENT),
    "usual": Intake(),
    "narrow": Intake(waiting=4, deadline=PATIENT),
    # Room for all: what a slow machine refuses with 429 is no loss to a reload.
    "live": Intake(waiting=100_000, deadline=PATIENT),
}


def serve_ours(kind: str, folder: Path, taken: socket) -> None:
    """The service."""
    models = ServedModels(detector=folder / "live.zip" if kind == "live" else None)
    settings = ServeSettings(models=models, bounds=KINDS[kind], state=folder / "state")
    serve(build_app(settings), taken)


def serve_bare(taken: socket) -> None:
    """Decodes and does nothing."""
    app = FastAPI()

    @app.post("/v1/moderations")
    async def moderate(body: ModerationBody) -> dict[str, str]:
        return {"model": body.model or ""}

    config = uvicorn.Config(app, log_config=None, access_log=False, backlog=512)
    uvicorn.Server(config).run(sockets=[taken])


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    with listen("127.0.0.1", 0) as taken:
        print(taken.getsockname()[1], flush=True)
        if kind == "bare":
            serve_bare(taken)
        else:
            serve_ours(kind, folder, taken)


if __name__ == "__main__":
    main()
