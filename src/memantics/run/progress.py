"""How far a run is, for whoever watches it."""

from __future__ import annotations

from dataclasses import dataclass

from memantics.core.records import STATUSES, Status


@dataclass(frozen=True, slots=True)
class Progress:
    """Counts of a run so far; the last one is its summary.

    ``resumed`` of the ``done`` items were finished by an earlier start. Calls, tokens and retries
    are of this start; tokens from the cache cost nothing and do not count. A build says before it
    asks what its ``memes`` will take, ``expected_in`` and ``expected_out`` tokens; 0: not said.
    ``adapted`` says how requests were changed so that the server would take them.

    >>> half = Progress(done=50, total=100, answered=50, seconds=10.0)
    >>> half.rate, half.left
    (5.0, 10.0)
    >>> Progress(tokens_in=1_000_000, tokens_out=500_000).cost((2.0, 8.0))
    6.0
    """

    done: int = 0
    total: int | None = None
    answered: int = 0
    refused: int = 0
    unparsed: int = 0
    failed: int = 0
    resumed: int = 0
    cached: int = 0
    calls: int = 0
    retries: int = 0
    tokens_in: int = 0
    tokens_out: int = 0
    seconds: float = 0.0
    in_flight: int = 0
    limit: int = 0
    paused: float = 0.0
    memes: int = 0
    expected_in: int = 0
    expected_out: int = 0
    adapted: tuple[str, ...] = ()

    @property
    def counts(self) -> dict[Status, int]:
        """The four counts."""
        return {status: getattr(self, status) for status in STATUSES}

    @property
    def rate(self) -> float:
        """Items per second of this start."""
        return (self.done - self.resumed) / self.seconds if self.seconds else 0.0

    @property
    def left(self) -> float | None:
        """Seconds to the end, as far as one can tell."""
        if self.total is None or not self.rate:
            return None
        return max(0, self.total - self.done) / self.rate

    def cost(self, prices: tuple[float, float]) -> float:
        """What this start cost; prices are per million tokens in and out."""
        return (self.tokens_in * prices[0] + self.tokens_out * prices[1]) / 1e6
