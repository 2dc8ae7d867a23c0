"""Browsing in a browser: a knowledge store, a folder of runs, live progress, hostile data."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, expect

from memantics.core.errors import DataError, UnknownName
from memantics.core.records import Answer, Reply
from memantics.core.rundir import ANSWERS, RunWriter, read_facts, write_facts
from memantics.evaluation.browse import ALIVE, RunFolder
from memantics.evaluation.evaluate import EvaluationSettings, evaluate_suite
from memantics.models.client import CallSettings
from memantics.serve.settings import ServedModels
from memantics.understanding.kb import KnowledgeStore, read_sample_knowledge
from memantics.understanding.knowledge.records import Individual, Knowledge, Relation
from tests.browser import launch
from tests.runs import pick, write_run
from tests.serve.visiting import assert_at_home, fits, serve_pages, visit

EVIL = "</script><img src=x onerror=alert(1)>"
TASK = "punmemecn/detection"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as opened:
        yield opened


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs of two models, and one that goes on."""
    folder = tmp_path_factory.mktemp("runs")
    models = ["fake/keys", "baseline/longest"]
    evaluate_suite(
        TASK,
        models,
        out=folder,
        settings=EvaluationSettings(data="sample", limit=4),
        calls=CallSettings(use_cache=False),
    )
    first = next(path for path in folder.iterdir() if "fake-keys" in path.name)
    going = folder / "later" / "going"
    shutil.copytree(first, going)
    (going / "scores.json").unlink()
    lines = (going / ANSWERS).read_bytes().splitlines(keepends=True)
    (going / ANSWERS).write_bytes(b"".join(lines[:2]))
    facts = read_facts(going)
    write_facts(going, replace(facts, finished="", model="fake/later", started="2099"))
    return folder


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "kb"
    made = KnowledgeStore.create(folder)
    made.add(read_sample_knowledge())
    scene = Individual("Scene", "duel", f"two knights {EVIL}", f"they fight {EVIL}")
    made.add([Knowledge("evil", (scene,))])
    return folder


@pytest.fixture(scope="module")
def address(runs: Path, store: Path) -> Iterator[str]:
    with serve_pages(ServedModels(store=store, runs=runs)) as served:
        yield served


@pytest.mark.slow
def test_a_store_is_searched_filtered_and_asked(browser: Browser, address: str) -> None:
    with visit(browser) as watched:
        page = watched.page
        page.goto(f"{address}/browse")
        expect(page.get_by_role("status")).to_have_text("80 memes")
        page.get_by_role("searchbox").fill("keyboard")
        page.get_by_role("button", name="Search").click()
        expect(page.get_by_role("status")).not_to_have_text("80 memes")
        found = page.locator(".memes b").all_inner_texts()
        assert "CN90001" in found
        assert len(found) < 80
        page.get_by_role("link", name="emotion").click()
        expect(page.get_by_role("status")).to_contain_text("No meme matches")
        page.goto(f"{address}/browse/store/meme?id=zh-004")
        assert page.locator(".wide .card").count() > 5
        # Toxic by its own knowledge, so it is blurred until asked for.
        shown = "one => getComputedStyle(one).filter"
        assert "blur" in page.locator(".picture img").evaluate(shown)
        page.get_by_role("button", name="Show the image").click()
        assert page.locator(".picture img").evaluate(shown) == "none"
        page.locator(".wide .card").first.click()
        expect(page).to_have_url(re.compile("#i-"))
        page.goto(f"{address}/browse/store/query")
        page.get_by_role("link", name="Most frequent emotions").click()
        expect(page.locator("thead th").first).to_have_text("emotion")
        page.get_by_label("Query", exact=True).fill("SELECT ?nonsense")
        page.get_by_role("button", name="Run query").click()
        expect(page.get_by_role("alert")).to_be_visible()
        page.goto(f"{address}/browse/store?q=knights")
        expect(page.locator(".memes b")).to_have_text(["evil"])
        page.goto(f"{address}/browse/store/meme?id=evil")
        assert EVIL in page.inner_text(".entries")
        expect(page.locator(".absent")).to_have_text("no image")
        page.set_viewport_size({"width": 390, "height": 900})
        assert fits(page)
        watched.errors[:] = [text for text in watched.errors if "422" not in text]
        assert_at_home(watched, address)


@pytest.mark.slow
def test_runs_are_listed_reported_and_read_item_by_item(browser: Browser, address: str) -> None:
    with visit(browser) as watched:
        page = watched.page
        page.goto(f"{address}/browse/runs")
        rows = page.locator("#runs tbody tr")
        assert rows.count() == 3
        expect(rows.nth(0)).to_contain_text("fake/later")
        expect(rows.nth(0).locator("[data-part=state]")).to_have_text("running")
        expect(rows.nth(0).locator("[data-part=count]")).to_have_text("2 / 4")
        assert rows.nth(0).get_by_role("checkbox").is_disabled()
        rows.nth(1).get_by_role("link").click()
        expect(page.locator("tbody tr")).to_have_count(4)
        counts = []
        for verdict in ("wrong", "correct"):
            page.get_by_role("link", name=verdict, exact=True).click()
            expect(page.locator(".chips [aria-current]")).to_have_text(verdict)
            counts.append(page.locator("tbody tr").count())
        assert sum(counts) == 4
        page.get_by_role("link", name="all", exact=True).click()
        expect(page.locator("tbody tr")).to_have_count(4)
        page.locator("tbody a").first.click()
        told = ["baseline/longest", "fake/keys", "fake/later"]
        expect(page.locator(".answers .card b")).to_have_text(told)
        assert page.locator(".picture img").count() == 1
        page.get_by_role("link", name="Next item").click()
        expect(page.get_by_role("link", name="Previous item")).to_be_visible()
        page.set_viewport_size({"width": 390, "height": 900})
        assert fits(page)
        page.set_viewport_size({"width": 1280, "height": 900})
        page.goto(f"{address}/browse/runs")
        for place in (1, 2):
            rows.nth(place).get_by_role("checkbox").check()
        page.get_by_role("button", name="Report on selected runs").click()
        expect(page.locator("body")).to_contain_text("baseline/longest")
        assert page.url.count("run=") == 2
        assert_at_home(watched, address)


@pytest.mark.slow
def test_a_run_that_goes_on_is_seen_to_go_on(browser: Browser, address: str, runs: Path) -> None:
    going = runs / "later" / "going"
    os.utime(going / ANSWERS)
    with visit(browser) as watched:
        page = watched.page
        page.goto(f"{address}/browse/runs")
        row = page.locator("[data-run='later/going']")
        expect(row.locator("[data-part=count]")).to_have_text("2 / 4")
        facts = read_facts(going)
        with RunWriter(going, facts) as writer:
            third = next(name for name, standing in writer.known.items() if standing is None)
            writer.add_answer(Answer(third, 0, "answered", Reply("yes"), "yes"))
        expect(row.locator("[data-part=count]")).to_have_text("3 / 4")
        assert row.locator("progress").evaluate("one => one.value") == 3
        write_facts(going, replace(facts, finished="2099"))
        expect(row.locator("[data-part=state]")).to_have_text("finished")
        assert_at_home(watched, address)
        write_facts(going, facts)


@pytest.mark.slow
def test_the_list_shows_no_path_of_a_model(runs: Path, tmp_path: Path) -> None:
    run = tmp_path / "runs" / "one"
    shutil.copytree(runs / "later" / "going", run)
    write_facts(run, replace(read_facts(run), model="recorded//srv/secret/intent/answers.jsonl"))
    with (
        serve_pages(ServedModels(runs=run.parent)) as address,
        urlopen(f"{address}/browse/runs") as answer,
    ):
        page = answer.read().decode()
    assert "<bdi>recorded/intent</bdi>" in page
    assert "/srv/secret" not in page


@pytest.mark.parametrize(("language", "note"), [("en", "trivial baseline"), ("zh", "简单基线")])
def test_the_note_of_a_model_is_in_the_language_of_the_page(
    address: str, language: str, note: str
) -> None:
    with urlopen(f"{address}/browse/runs?lang={language}") as answer:
        page = answer.read().decode()
    assert page.count(f'<span class="tag">{note}</span>') == 1
    (link,) = re.findall(r'"(/browse/runs/run\?[^"]+)">.*?</a></th>\s*<td><bdi>baseline/', page)
    with urlopen(f"{address}{link}&lang={language}") as answer:
        assert f'<span class="tag">{note}</span>' in answer.read().decode()


@pytest.mark.slow
def test_links_lead_only_to_what_was_found(address: str) -> None:
    def ask(path: str, **query: str) -> int:
        try:
            with urlopen(f"{address}{path}?{urlencode(query)}") as answer:
                return int(answer.status)
        except HTTPError as error:
            with error:
                return error.code

    assert ask("/browse/runs/run", name="later/going") == 200
    for name in ("../..", "/etc", "later", "nobody"):
        assert ask("/browse/runs/run", name=name) == 404
    assert ask("/browse/runs/item", run="later/going", item="nobody") == 404
    assert ask("/browse/store/meme", id="nobody") == 404
    assert ask("/browse/store", dimension="Weather") == 404
    assert ask("/browse/runs/report", run="nobody") == 422
    assert ask("/browse/runs/report") == 422
    assert ask("/browse/store/query", q="INSERT DATA { <a:b> <a:c> <a:d> }") == 422
    assert (
        ask("/browse/store/query", q="SELECT * { SERVICE <http://127.0.0.1:1/> { ?a ?b ?c } }")
        == 422
    )


def test_a_dimension_of_a_build_s_own_is_on_the_page(tmp_path: Path) -> None:
    made = KnowledgeStore.create(tmp_path / "kb")
    links = (Relation("colours", "VisualMaterial/flag"),)
    red = Individual("ColorUse", "red", "danger red", relations=links)
    made.add([Knowledge("1", (Individual("VisualMaterial", "flag", "a flag"), red))])
    del made
    with serve_pages(ServedModels(store=tmp_path / "kb")) as address:
        page = urlopen(f"{address}/browse/store/meme?id=1").read().decode()
    assert re.search(r'<li class="d-ColorUse"[^>]*><i></i>color use <b>1</b>', page)
    assert "danger red" in page


@pytest.mark.slow
def test_texts_of_answers_stay_texts(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "a", "own/task", {"one": EVIL}, form=pick("A", "B"), golds={"one": EVIL})
    with serve_pages(ServedModels(runs=tmp_path)) as address, visit(browser) as watched:
        page = watched.page
        page.goto(f"{address}/browse/runs/item?run=a&item=one")
        assert page.inner_text(".answers").count(EVIL) == 1
        expect(page.locator(".answers .tag")).to_have_text("correct")
        page.goto(f"{address}/browse/store")  # without a store the sample data's is read
        expect(page.get_by_role("status")).to_have_text("79 memes")
        assert_at_home(watched, address)


def test_states_of_a_run_on_both_sides_of_the_limit(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "a", "own/task", {"one": "yes"})
    found = RunFolder(tmp_path)
    for age, state in ((ALIVE - 20, "running"), (ALIVE + 20, "stopped")):
        past = time.time() - age
        for file in ("run.json", ANSWERS):
            os.utime(folder / file, (past, past))
        assert found.get("a").state == state
    row = found.get("a")
    assert (row.done, row.total, row.counts["answered"]) == (1, None, 1)
    (folder / "run.json").write_text("{")
    assert found.list()[0].state == "damaged"
    with pytest.raises(UnknownName):
        found.path("b")
    with pytest.raises(DataError, match="is not a folder"):
        RunFolder(tmp_path / "none")


@pytest.mark.slow
def test_a_store_that_others_write_into_is_read_anew(tmp_path: Path) -> None:
    from memantics.understanding.kb import StoreReader

    made = KnowledgeStore.create(tmp_path / "kb")
    made.add([Knowledge("1", (Individual("Scene", "a", "a cat"),))])
    reader = StoreReader(tmp_path / "kb")
    assert reader.search("cat", "", 0, 10)[0] == 1
    made.add([Knowledge("2", (Individual("Scene", "b", "another cat"),))])
    assert reader.search("CAT", "Scene", 0, 10)[0] == 2
    assert reader.search("cat", "Scene", 1, 1)[1][0].id == "2"
    assert reader.search("cat", "Emotion", 0, 10) == (0, ())
    assert reader.search('"} #', "", 0, 10)[0] == 0


@pytest.mark.parametrize(
    ("accepted", "language", "told"),
    [
        ("text/html,*/*", "en", "page not found"),
        ("text/html,*/*", "zh", "页面不存在"),
        ("application/json", "en", '"not_found"'),
    ],
)
def test_an_unknown_url_is_a_page_for_browsers(
    address: str, accepted: str, language: str, told: str
) -> None:
    headers = {"accept": accepted, "accept-language": language}
    with pytest.raises(HTTPError) as refused:
        urlopen(Request(f"{address}/browse/nowhere", headers=headers))
    with refused.value as answer:
        body = answer.read().decode()
        assert (answer.code, told in body) == (404, True), body
        assert ("<html" in body) is ("html" in accepted)
