"""One process or several: what ``torchrun`` or ``accelerate launch`` put into the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from memantics.core.errors import InputError
from memantics.detector.neural.packages import get_torch


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process's place among those that train together."""

    rank: int = 0
    size: int = 1
    local: int = 0

    @property
    def first(self) -> bool:
        """Whether this process writes files and speaks."""
        return self.rank == 0


def join_ranks(device: str) -> Ranks:
    """Join the others that the launcher started; alone without a launcher."""
    size = int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        return Ranks()
    ranks = Ranks(int(os.environ["RANK"]), size, int(os.environ.get("LOCAL_RANK", "0")))
    torch = get_torch()
    if not torch.distributed.is_initialized():
        backend = "nccl" if resolve_device(device, ranks).type == "cuda" else "gloo"
        torch.distributed.init_process_group(backend, timeout=timedelta(minutes=30))
    return ranks


def leave_ranks(ranks: Ranks) -> None:
    """Say goodbye to the others."""
    if ranks.size > 1:
        get_torch().distributed.destroy_process_group()


def wait_for_all(ranks: Ranks) -> None:
    """Go on when all others are here."""
    if ranks.size > 1:
        get_torch().distributed.barrier()


def share_text(ranks: Ranks, text: str) -> str:
    """What the first process says, for all: as bytes, since objects would travel as pickles."""
    if ranks.size == 1:
        return text
    torch = get_torch()
    device = torch.device("cpu")
    if torch.distributed.get_backend() == "nccl":
        device = torch.device("cuda", ranks.local)
    data = torch.tensor(list(text.encode()), dtype=torch.uint8, device=device)
    size = torch.tensor([len(data)], device=device)
    torch.distributed.broadcast(size, 0)
    if not ranks.first:
        data = torch.zeros(int(size), dtype=torch.uint8, device=device)
    torch.distributed.broadcast(data, 0)
    return bytes(data.tolist()).decode()


def resolve_device(name: str, ranks: Ranks) -> Any:
    """The device of this process: with ``auto`` a GPU of its own where there is one."""
    torch = get_torch()
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda":
        name = f"cuda:{ranks.local}"
    if name.startswith("cuda"):
        place = int(name.partition(":")[2] or 0)
        if not torch.cuda.is_available() or place >= torch.cuda.device_count():
            raise InputError(f"there is no device {name}", hint="use --device cpu")
        torch.cuda.set_device(place)
    elif name != "cpu":
        raise InputError(f"there is no device {name}", hint="use auto, cpu, cuda or cuda:1")
    return torch.device(name)
