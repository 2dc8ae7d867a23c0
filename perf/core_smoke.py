"""Smoke test of a plain install: run the core's commands against a local server.

``walk`` runs the commands of any Python in which Memantics is installed, each in a process of its
own, so that a test and ``perf.bounds`` can try several installs the same way.
"""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

MODEL = "openai/walk"
TASK = "mquest/qa"
RUNS = "RUNS"  # stands for the folders that the run wrote
FIRST = "FIRST"  # and for the first of them
TABLE = "id,text,label\n" + "".join(
    f"{n},a caption number {n} of the table,{'yes' if n % 2 else 'no'}\n" for n in range(12)
)
SAMPLES = Path(__file__).resolve().parents[1] / "src" / "memantics" / "benchmarks"
# In this order: later commands read what earlier ones wrote.
CORE: tuple[tuple[str, ...], ...] = (
    ("--help",),
    ("--version",),
    ("models", "list", "--json"),
    ("prompts", "show", TASK),
    ("samples", "copy", "pack"),
    ("data", "list", "--json"),
    ("run", TASK, "--model", MODEL, "--model", "baseline/longest", "--limit", "12"),
    ("run", "suite", "--model", "fake/keys", "--limit", "2", "--out", "suite"),
    ("score", FIRST, "--json"),
    ("compare", RUNS, "--json"),
    ("power", TASK, "--effect", "10", "--json"),
    ("report", RUNS, "--out", "report.html"),
    ("audit", "mquest"),
    ("audit", "table.csv/label"),
    ("paper", "mquest", FIRST, "--out", "paper.html"),
    ("export-task", TASK, "--format", "openai-batch", "--model", "walk", "--out", "batch"),
    ("import-answers", "answers.csv", "--task", TASK, "--model", "another"),
    ("data", "add", "mquest", str(SAMPLES / "mquest" / "sample")),
    ("data", "add", "punmemecn", str(SAMPLES / "punmemecn" / "sample")),
    ("data", "add", "table.csv", "--label", "label", "--text", "text"),
    ("data", "list"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A command that was run: its words, exit code, and what it printed."""

    words: tuple[str, ...]
    code: int
    out: str
    err: str

    def __str__(self) -> str:
        told = self.err.strip().splitlines()[-1:] or [""]
        return f"memantics {' '.join(self.words)}: exit code {self.code} {told[0]}".rstrip()


class _Chat(BaseHTTPRequestHandler):
    """Answers every chat completion with the letter B."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "walk", "object": "model"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        message = {"role": "assistant", "content": "B"}
        self._send(
            {
                "model": "walk",
                "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
                "usage": {"prompt_tokens": 9, "completion_tokens": 1},
            }
        )

    def _send(self, value: Mapping[str, object]) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@contextmanager
def serve_chat() -> Iterator[str]:
    """Yield a server of chat completions on this machine; gives its base URL."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Chat)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def run(
    python: Path, folder: Path, words: Sequence[str], environment: Mapping[str, str] | None = None
) -> Step:
    """Run one command of an install in a folder, with a home of its own."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("OPENAI_", "MEMANTICS_", "PYTHON"))
    }
    given = (
        kept | {"MEMANTICS_HOME": str(folder / "home"), "COLUMNS": "80"} | dict(environment or {})
    )
    done = subprocess.run(
        [str(python), "-m", "memantics", *words],
        cwd=folder,
        env=given,
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=300,
    )
    return Step(tuple(words), done.returncode, done.stdout, done.stderr)


def walk(
    python: Path, folder: Path, environment: Mapping[str, str] | None = None
) -> Iterator[Step]:
    """Run every command of the core, one after the other."""
    (folder / "table.csv").write_text(TABLE, encoding="utf-8")
    with serve_chat() as url:
        for words in CORE:
            asks = ("--base-url", url) if MODEL in words else ()
            yield run(python, folder, (*_fill_in(words, folder), *asks), environment)
            _write_answers(folder)


def _fill_in(words: Sequence[str], folder: Path) -> Iterator[str]:
    """Put the folders of runs in the place of their names."""
    for word in words:
        found = sorted(str(path.relative_to(folder)) for path in folder.glob("runs/mquest-qa-*"))
        yield from {RUNS: found, FIRST: found[:1]}.get(word, [word])


def _write_answers(folder: Path) -> None:
    """The answers of the first run as a table of another tool."""
    for path in sorted(folder.glob("runs/mquest-qa-*/answers.jsonl"))[:1]:
        lines = path.read_text(encoding="utf-8").splitlines()
        items = dict.fromkeys(json.loads(line)["item"] for line in lines)
        table = "".join(f"{item},B\n" for item in items)
        (folder / "answers.csv").write_text(f"id,answer\n{table}", encoding="utf-8")
