"""``python -m perf.newcomer [--json]``: simulate a new user of the annotation app.

The clock starts with ``memantics annotate --demo``. The newcomer knows nothing but the link that
the command prints: on every page they read all of it at a person's pace, tick what must be ticked,
look at the veiled picture, choose among the options that are there, and press the button that
stands out. Nothing here knows an address, a field or a workflow.
"""

from __future__ import annotations

import argparse
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass

import orjson
from playwright.sync_api import Locator, Page
from tests.browser import launch, watch

LIMIT = 120.0
WORDS_PER_SECOND = 250 / 60
SECONDS_PER_CLICK = 1.0
_LINK = re.compile(r"http://127\.0\.0\.1:\d+/\S+")


@dataclass(frozen=True, slots=True)
class Result:
    """Seconds since the command was typed, and what was done until the limit."""

    link: float
    first_answer: float
    answers: int
    limit: float
    kept: bool


@contextmanager
def demo() -> Iterator[str]:
    """Yield the demonstration in another process; the link that it prints."""
    command = [sys.executable, "-m", "memantics.cli.main", "annotate", "--demo", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            lines = process.stdout or ()
            yield next(found[0] for line in lines if (found := _LINK.search(line)))
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(30)


class Newcomer:
    """Somebody at a browser, with a reading pace and no knowledge of the app."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._read: set[str] = set()

    def read(self) -> None:
        """Read what is new on the page."""
        lines = self.page.locator("main").inner_text().splitlines()
        words = sum(len(line.split()) for line in lines if line not in self._read)
        self._read.update(lines)
        self.page.wait_for_timeout(1000 * words / WORDS_PER_SECOND)

    def click(self, thing: Locator) -> None:
        """Aim and press."""
        self.page.wait_for_timeout(1000 * SECONDS_PER_CLICK)
        thing.click()

    def fill_in(self) -> None:
        """Tick what must be ticked, look, and take the first answer of each question."""
        for box in self.page.locator("main input[type=checkbox][required]:visible").all():
            self.click(box)
        for veil in self.page.locator("main .veil:visible").all():
            self.click(veil)
        done: set[str | None] = set()
        # Answers can bring up further questions: look again until nothing new is there.
        while found := [
            radio
            for radio in self.page.locator("main input[type=radio]").all()
            if radio.get_attribute("name") not in done
            and radio.locator("xpath=ancestor::label").is_visible()
        ]:
            done.add(found[0].get_attribute("name"))
            self.click(found[0].locator("xpath=ancestor::label"))

    def go_on(self) -> None:
        """Press the button that stands out."""
        before = self.page.url
        self.click(self.page.locator("main .main:visible").first)
        self.page.wait_for_url(lambda url: url != before, timeout=15_000)


def measure() -> Result:
    """Let one newcomer work until the limit."""
    start = time.monotonic()
    first, answers = float("inf"), 0
    with demo() as link, launch() as browser, watch(browser) as watched:
        opened = time.monotonic() - start
        newcomer = Newcomer(watched.page)
        watched.page.goto(link)
        while time.monotonic() - start < LIMIT:
            newcomer.read()
            newcomer.fill_in()
            is_item = watched.page.locator("main .veil").count() > 0
            newcomer.go_on()
            now = time.monotonic() - start
            if is_item and now < LIMIT:
                answers += 1
                first = min(first, now)
                print(f"  answer {answers} after {now:.0f} s", file=sys.stderr, flush=True)
    return Result(opened, first, answers, LIMIT, kept=answers > 0)


def main() -> int:
    """Measure, print the results and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m perf.newcomer", description=__doc__)
    parser.add_argument("--json", action="store_true", help="print figures as JSON")
    given = parser.parse_args()
    result = measure()
    if given.json:
        print(orjson.dumps(asdict(result)).decode())
    else:
        print(
            f"link after {result.link:.0f} s, first answer after {result.first_answer:.0f} s,"
            f" {result.answers} within {result.limit:.0f} s"
        )
        print("kept" if result.kept else "MISSED")
    return 0 if result.kept else 1


if __name__ == "__main__":
    sys.exit(main())
