"""Whoever fetches here survives servers that lie: in time, in bounded memory, and nowhere else."""

from __future__ import annotations

import asyncio
import ipaddress
import random
import resource
import time
from collections.abc import Iterator

import pytest

from memantics.core.errors import ModelError
from memantics.models.openai import OpenAIModel, OpenAISettings
from memantics.serve import inputs as fetching
from memantics.serve.inputs import ImageFetcher, PublicResolver, is_public
from memantics.serve.refusals import Refusal
from tests.engine.toy import toy_request
from tests.hostile.cases import SEED, Case, count_cases, noted
from tests.hostile.liars import KINDS, Liar, generate
from tests.serve.site import MEME

SECONDS = 1.0
BODY = b'{"choices": [{"message": {"content": "A"}}]}'
INSIDE = (
    *("0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/29", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/4"),
    *("240.0.0.0/4", "255.255.255.255/32", "::/128", "::1/128", "::ffff:0:0/96", "64:ff9b::/96"),
    *("64:ff9b:1::/48", "100::/64", "2001::/32", "2001:db8::/32", "2002::/16", "fc00::/7"),
    *("fe80::/10", "fec0::/10", "ff00::/8", "::7f00:0/104"),
)


@pytest.fixture
def liar() -> Iterator[Liar]:
    made = Liar(MEME.read_bytes())
    yield made
    made.close()


async def local(_host: str, _port: int) -> list[str]:
    return ["127.0.0.1"]


def measure_memory() -> int:
    """The most memory that this process ever held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def fetch(liar: Liar, case: Case) -> bytes | None:
    """The bytes of an image, or None where it was refused."""
    liar.case = case
    open_to_all = PublicResolver(local, allow=lambda _: True)
    fetcher = ImageFetcher((f"memes.example:{liar.port}",), 1_000_000, open_to_all)
    try:
        return asyncio.run(fetcher.fetch(f"http://memes.example:{liar.port}/meme.png"))
    except Refusal as refused:
        assert len(str(refused)) < 300  # noqa: PT017 - and nothing of what the server said
        return None


def ask(liar: Liar, case: Case) -> None:
    liar.case = case

    async def run() -> None:
        settings = OpenAISettings(timeout=SECONDS, connect_timeout=SECONDS)
        model = OpenAIModel("m", f"http://127.0.0.1:{liar.port}/v1", "", settings)
        try:
            await model.answer(toy_request())
        except ModelError as error:
            assert len(str(error)) < 1000  # noqa: PT017 - one line, however much was said
        finally:
            await model.close()

    asyncio.run(run())


@pytest.mark.slow
def test_images_and_replies_of_servers_that_lie(
    liar: Liar, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "_SECONDS", SECONDS)
    memory = measure_memory()
    for case in generate(SEED, count_cases(2 * len(KINDS))):
        with noted("liars", case):
            before, began = liar.visits, time.monotonic()
            data = fetch(liar, case)
            assert data is None or len(data) <= 1_000_000
            assert time.monotonic() - began < SECONDS + 3
            # No redirect is followed; who was hung up on asks once more.
            assert liar.visits - before <= 1 + (case["kind"] == "hang up")
            ask(liar, case)
            assert time.monotonic() - began < 2 * SECONDS + 6
    # The bombs unpack to 200 MB, the endless bodies have 64.
    assert measure_memory() - memory < 150_000_000


@pytest.mark.parametrize("network", INSIDE)
def test_no_name_leads_inside(network: str) -> None:
    chance, net = random.Random(SEED), ipaddress.ip_network(network)
    for _ in range(50):
        address = str(net[chance.randrange(net.num_addresses)])
        assert not is_public(address), address


def test_names_of_this_machine_are_not_fetched() -> None:
    """As the system itself resolves them."""
    for name in ("localhost", "ip6-localhost", "localhost.localdomain"):
        with pytest.raises(Refusal, match=r"not public|not known|cannot be resolved"):
            asyncio.run(ImageFetcher((f"{name}:9",), 1000).fetch(f"http://{name}:9/a.png"))
