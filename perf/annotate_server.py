"""``python -m perf.annotate_server KIND FOLDER``: start one of the measured servers.

``ours`` is the annotation app on SQLite, ``team`` the app on the PostgreSQL server whose address is
in the file ``address`` of the folder, and ``bare`` an endpoint of the same framework that does one
insert through the same driver, as durable as ours. All print their port and serve until they are
asked to stop.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from socket import socket
from typing import Any

import sqlalchemy as sa
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from starlette.responses import Response

from memantics.annotation.service import open_service
from memantics.annotation.web.app import make_app
from memantics.annotation.web.settings import WebSettings
from memantics.web.server import listen, serve

PEOPLE = 50
SECRET = b"a secret that only measures"
ADDRESS = "address"


class Row(BaseModel):
    """The request body of the bare endpoint."""

    item: int
    value: str


def serve_ours(folder: Path, taken: socket) -> None:
    """The annotation app."""
    service = open_service(str(folder / "load.db"), folder / "media")
    serve(make_app(service, WebSettings(SECRET)), taken)


def serve_team(folder: Path, taken: socket) -> None:
    """The annotation app on PostgreSQL."""
    service = open_service((folder / ADDRESS).read_text(), folder / "media")
    serve(make_app(service, WebSettings(SECRET)), taken)


def serve_bare(folder: Path, taken: socket) -> None:
    """One insert, and nothing else."""
    engine = sa.create_engine(f"sqlite:///{folder / 'bare.db'}", pool_size=PEOPLE)
    turn = threading.Lock()  # writers that poll for SQLite's own lock would be slower still

    def set_up(connection: Any, _record: object) -> None:
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "busy_timeout = 15000"):
            connection.execute(f"PRAGMA {pragma}")

    sa.event.listen(engine, "connect", set_up)
    table = sa.Table(
        "answers",
        sa.MetaData(),
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("item", sa.Integer),
        sa.Column("value", sa.Text),
    )
    table.create(engine, checkfirst=True)
    app = FastAPI()

    @app.post("/insert")
    def insert(row: Row) -> dict[str, int]:
        with turn, engine.begin() as connection:
            done = connection.execute(sa.insert(table), {"item": row.item, "value": row.value})
        key = done.inserted_primary_key
        return {"id": int(key[0]) if key else 0}

    @app.get("/health")
    def health() -> Response:
        return Response()

    config = uvicorn.Config(app, log_config=None, access_log=False, backlog=512)
    uvicorn.Server(config).run(sockets=[taken])


def main() -> None:
    kind, folder = sys.argv[1], Path(sys.argv[2])
    taken = listen("127.0.0.1", 0)
    print(taken.getsockname()[1], flush=True)
    {"ours": serve_ours, "team": serve_team, "bare": serve_bare}[kind](folder, taken)


if __name__ == "__main__":
    main()
