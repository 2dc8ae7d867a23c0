"""The tutorial on policies: people in a real browser, on SQLite and on PostgreSQL."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from memantics.annotation.service import open_service
from memantics.core.policy import read_policy
from memantics.core.queue import read_annotations, read_queue
from memantics.moderation import verify_decisions
from tests.annotation.browser.site import Site, User, Windows, serve_site
from tests.annotation.postgres import start_postgres, why_not
from tests.annotation.team import quick_hasher
from tests.browser import launch
from tests.commands import Shell
from tests.moderation.policies.scripted import serve_scripted
from tests.places import ROOT

pytestmark = pytest.mark.slow
PAGE = (ROOT / "docs" / "tutorials" / "policy-to-appeal.md").read_text(encoding="utf-8")
WORDS = {"turnip": "1", "radish": "1", "kale": "2", "leek": "2", "sprout": "2"}
PAINTING = "nobody asked but a radish in a painting"


def commands() -> Iterator[list[str]]:
    for block in re.findall(r"```sh\n(.*?)```", PAGE, flags=re.DOTALL):
        yield from (shlex.split(line) for line in block.splitlines())


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[[str], str]]:
    """The address for a file that the tutorial names: the file itself, or one database for all."""
    if request.param == "sqlite":
        yield lambda name: str(tmp_path / name)
        return
    if reason := why_not():
        pytest.skip(reason)
    with start_postgres() as server:
        address = server.make_database()
        yield lambda _: address


def decide(user: User, project: int, answer: Callable[[str], str]) -> list[str]:
    """Answer everything that there is for a person, in the browser; return the texts."""
    seen = []
    while user.next(project):
        page = user.page
        text = page.locator("main").inner_text()
        assert "Clause 1: Root vegetables" in page.content()
        clause = answer(text)
        verdict = "no" if clause == "none" else "yes"
        page.locator(f'[name=f-harmful][value="{verdict}"]').check(force=True)
        if clause != "none":
            page.locator(f'[name=f-clause][value="{clause}"]').check(force=True)
        user.save()
        seen.append(text)
    return seen


def list_texts() -> Iterator[str]:
    """Yield the texts that reviewers may see: posts, and the examples of the policy."""
    rows = (ROOT / "examples/policies/posts.csv").read_text("utf-8").splitlines()[1:]
    yield from (row.partition(",")[2] for row in rows)
    policy = read_policy(ROOT / "examples/policies/forum.md")
    for clause in policy.clauses:
        yield from (one.value for one in (*clause.examples, *clause.counter_examples))


def by_words(page: str) -> str:
    (shown,) = (text for text in list_texts() if text in page)
    return next((clause for word, clause in WORDS.items() if word in shown), "none")


def review(site: Site, queue: Path, project: int) -> None:
    """Ann reviews everything by the words of the policy."""
    assert site.service.exchange.open_queue(site.lead, queue).id == project
    (ann,) = site.hire(project, ("reviewer",), "ann")
    assert len(decide(ann, project, by_words)) == len(read_queue(queue)[1])
    assert ann.window.errors == []


def review_appeal(site: Site, queue: Path, project: int) -> None:
    """Ann, who decided before, gets nothing; Bob overturns."""
    assert site.service.exchange.open_queue(site.lead, queue).id == project
    site.service.projects.add_member(site.lead, project, "ann", ["reviewer"])
    (bob,) = site.hire(project, ("reviewer",), "bob")
    ann = next(user for user in site.users if user.name == "ann")
    assert ann.next(project) == ""
    (text,) = decide(bob, project, lambda _: "none")
    assert "My post is about a radish in a painting." in text
    assert "reviewer-" not in text


def walk(shell: Shell, site: Site, model: str, place: Callable[[str], str]) -> dict[str, str]:
    """Run the steps of the tutorial; return what the commands printed."""
    told: dict[str, str] = {}
    chosen = ""
    for words in commands():
        name = " ".join(words[1:3])
        given = [chosen if word == "DECISION" else word for word in words[1:]]
        given = [model if word == "http://127.0.0.1:9000/v1" else word for word in given]
        given = [place(word) if word == "decisions.db" else word for word in given]
        if name == "annotate open":
            folder = shell.folder / words[3]
            (review if words[3] != "appeals" else review_appeal)(
                site, folder, 1 if words[3] != "appeals" else 2
            )
            continue
        if words[1] == "annotate":
            given += ["--db", place("annotate.db"), "--media", str(shell.folder / "media")]
        ran = shell.apart.run(*given)
        assert ran.code == 0, f"{words}\n{ran.out}\n{ran.err}"
        key = name if name not in told else f"{name} again"
        told[key] = ran.out
        if name == "decisions record":
            line = next(line for line in ran.out.splitlines() if "q02" in line)
            chosen = line.split()[0]
    return told


def test_the_tutorial(database: Callable[[str], str], tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    shell = Shell(tmp_path)
    with ExitStack() as stack:
        model = stack.enter_context(serve_scripted())
        windows = Windows(stack.enter_context(launch()))
        service = open_service(database("annotate.db"), tmp_path / "media", hasher=quick_hasher())
        stack.callback(service.close)
        site = stack.enter_context(serve_site(service, windows))
        told = walk(shell, site, model, database)
        check(told, tmp_path, database("decisions.db"))
        ann = next(user for user in site.users if user.name == "ann")
        assert ann.next(1), "items of the changed clause are annotated again"


def check(told: dict[str, str], folder: Path, log: str) -> None:
    """Check what the steps left behind."""
    assert "0 of 14 others" in told["policy test"]
    assert "第 1 条“根茎类蔬菜”" in told["decisions explain"]
    assert "overturned: 1; upheld: 0" in told["decisions resolve"]
    assert "counter-examples" in told["policy diff again"]
    grown = read_policy(folder / "forum-next.md")
    assert (grown.version, grown.clauses[0].counter_examples[-1].value) == ("2", PAINTING)
    reviewed = list(read_annotations(folder / "reviewed.jsonl"))
    gold = [one for one in reviewed if "gold" in one.hidden]
    assert gold
    assert all("gold" not in json.dumps(one.values) for one in gold)
    (label,) = read_annotations(folder / "overturned.jsonl")
    assert (label.hidden["text"], label.values["harmful"]) == (PAINTING, "no")
    statements = json.loads((folder / "statements" / "statements-0001.json").read_text())
    assert all("radish in a painting" not in json.dumps(one) for one in statements["statements"])
    assert "reviewer-" not in json.dumps(statements)
    assert "decisions" in (folder / "decisions.html").read_text()
    found = verify_decisions(log)
    assert found.sound
    assert found.lines > 3
