"""The page in a real browser: what it shows and what it refuses."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import expect

import memantics as mm
from memantics.core.errors import StoreError
from memantics.core.records import Field, Form, Image, Item, Option, Reply, Score
from memantics.core.rundir import BaselineScores, read_items
from memantics.evaluation.reports.page import ReportSettings, build_report
from memantics.evaluation.reports.runs import SAMPLE_NOTE
from tests.report.conftest import Opener
from tests.report.samples import WARNING, answer, draw_image, make_facts, write_run
from tests.report.steps import count_items, open_everything

ATTACK = (
    "</script><script>window.hacked=1</script>"
    "<img src=x onerror=window.hacked=1>\"'><svg/onload=window.hacked=1>"
    "{{7*7}}<!--\u2028\u2029\u202egnp.exe\x00 <a href=javascript:window.hacked=1>x</a>"
)


@pytest.fixture(scope="module", params=["en", "zh"])
def hostile_page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run in which every text that comes from outside attacks the page."""
    root = tmp_path_factory.mktemp("hostile")
    name = "x\" onerror='window.hacked=1' <b>.png"
    picture = Image(draw_image(root / name, 1))
    sheet = (Field(ATTACK, "choice", (Option(ATTACK, ATTACK, picture), Option("B", ATTACK))),)
    form = Form(ATTACK, sheet, context={ATTACK: ATTACK})
    lost = Image(root / "<img src=x onerror=window.hacked=1>.png")
    items = [
        Item(ATTACK + str(n), ATTACK, ATTACK, form, (picture, lost), {ATTACK: ATTACK + str(n % 2)})
        for n in range(4)
    ]
    answers = [
        answer(i.id, ATTACK, reason=ATTACK, reply=Reply(ATTACK, ATTACK, finish=ATTACK))
        for i in items[:3]
    ]
    scores = (
        Score("accuracy", 0.5, 3, 0.2, 0.8, note=ATTACK),
        Score(ATTACK, 0.5, 3),
        Score("accuracy", 0.5, 3, 0.2, 0.8, by=ATTACK, label=ATTACK),
    )
    facts = make_facts(
        "t/q",
        ATTACK,
        title=ATTACK,
        model_note=ATTACK,
        warning=ATTACK,
        options={ATTACK: ATTACK},
        prompts={ATTACK: ATTACK},
        split=ATTACK,
        invalid=ATTACK,
        version=ATTACK,
        started=ATTACK,
        data={"kind": ATTACK, ATTACK: [ATTACK]},
        identity={ATTACK: {ATTACK: ATTACK}},
    )
    baseline = (BaselineScores("baseline/" + ATTACK, scores),)
    first = write_run(root / "a<script>", facts, items, answers, baseline, scores)
    other = replace(facts, model=ATTACK + "2")
    second = write_run(root / "b&amp;", other, items, answers, baseline, scores)
    out = root / "report.html"
    build_report([first, second], out, ReportSettings(ATTACK, request.param))
    return out


@pytest.mark.slow
def test_nothing_from_data_runs(opener: Opener, hostile_page: Path) -> None:
    with opener() as seen:
        seen.page.goto(hostile_page.as_uri())
        open_everything(seen.page)
        expect(seen.page.locator(".item")).to_have_count(4)
        for button in seen.page.locator("button.picture").all():
            button.click()
        seen.page.select_option("#f-run", "1")
        seen.page.locator("#f-facets select").select_option(index=1)
        expect(seen.page.locator(".item")).to_have_count(2)
        seen.page.locator(".item h3 a").first.click()
        assert seen.page.evaluate("window.hacked") is None
        allowed = "img[src^='data:image/webp']"
        assert seen.page.locator("img").count() == seen.page.locator(allowed).count() > 0
        assert seen.page.locator("a[href^='javascript']").count() == 0
        assert seen.page.locator("svg[onload], script[src], iframe, base").count() == 0
        seen.assert_quiet()


# Texts of our own, next to those from data, must still run from left to right.
REVERSED = """() => {
  const walker = document.createTreeWalker(document.querySelector('body'), NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (parent.closest('bdi, pre, .question, svg, script, style, select, .unseen')) continue;
    const at = (place) => {
      const range = document.createRange();
      range.setStart(node, place);
      range.setEnd(node, place + 1);
      return range.getBoundingClientRect();
    };
    for (let place = 0; place + 1 < node.length; place += 1) {
      const [one, two] = [at(place), at(place + 1)];
      if (one.width && two.width && one.top === two.top && two.left < one.left) {
        found.push(node.textContent);
        break;
      }
    }
  }
  return found;
}"""


@pytest.mark.slow
def test_direction_overrides_stay_in_their_place(opener: Opener, hostile_page: Path) -> None:
    with opener() as seen:
        seen.page.goto(hostile_page.as_uri())
        open_everything(seen.page)
        assert seen.page.evaluate(REVERSED) == []


def test_attacks_are_shown_as_the_text_they_are(opener: Opener, hostile_page: Path) -> None:
    with opener() as seen:
        seen.page.goto(hostile_page.as_uri())
        text = seen.page.locator(".question").first.text_content()
        assert text == ATTACK
        label = seen.page.locator(".board tbody th bdi").first
        assert "<img src=x" in label.inner_text()
        # A right-to-left override must not reach beyond its own element.
        for place in (".board tbody th bdi", ".question", ".answer pre", ".item h3 bdi"):
            style = seen.page.locator(place).first.evaluate(
                "(e) => getComputedStyle(e).unicodeBidi"
            )
            assert style in ("isolate", "plaintext", "isolate-override")
        assert seen.page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.slow
def test_policy_stops_what_escaping_would_have_missed(
    opener: Opener, demo_page: Path, tmp_path: Path
) -> None:
    attack = (
        "<script>window.hacked=1</script><p onclick='window.hacked=1' id=trap>x</p>"
        "<img src=x onerror='window.hacked=1'><img src='https://example.invalid/x.png'>"
        "<style>body { display: none }</style><iframe src='https://example.invalid/'></iframe>"
    )
    broken = tmp_path / "broken.html"
    page = demo_page.read_text(encoding="utf-8")
    broken.write_text(page.replace("</main>", f"{attack}</main>", 1), encoding="utf-8")
    with opener() as seen:
        ends: list[str | None] = []
        seen.page.on("requestfailed", lambda request: ends.append(request.failure))
        seen.page.goto(broken.as_uri())
        seen.page.click("#trap")
        assert seen.page.evaluate("window.hacked") is None
        # The driver announces a request that the policy stops before it leaves the browser.
        assert set(ends) == {"csp"}
        assert len(ends) == len([url for url in seen.requests if url != broken.as_uri()])
        assert len(seen.errors) >= 5


def test_page_is_quiet_complete_and_says_what_it_is(opener: Opener, demo_page: Path) -> None:
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        expect(page.locator("header .banner.sample")).to_have_text(SAMPLE_NOTE)
        expect(page.locator("header .banner.warning")).to_contain_text(WARNING)
        assert page.locator(".board").count() == 2
        first = page.locator(".board").first
        names = first.locator("tbody .name").all_inner_texts()
        assert names == [
            "openai/sample-vl-72b",
            "embedded/reader",
            "baseline/constant",
            "baseline/longest",
        ]
        assert first.locator("tr.trivial").count() == 2
        expect(first.locator("tbody tr").nth(1)).to_contain_text("baseline, not a VLM")
        assert first.locator("tbody .strip .mark").count() == 4
        assert first.locator("td[data-name=memes]").all_inner_texts() == ["24", "24", "24", "–"]
        assert page.locator("#provenance dl").count() == 6
        open_everything(page)
        expect(page.locator("#provenance")).to_contain_text("ab12" * 16)
        seen.assert_quiet()
        assert [url for url in seen.requests if url.startswith("file:")] == [demo_page.as_uri()]


@pytest.mark.slow
def test_without_scripts_the_metrics_are_still_there(demo_page: Path, opener: Opener) -> None:
    with opener() as seen:
        browser = seen.page.context.browser
        assert browser is not None
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(demo_page.as_uri())
        expect(page.locator(".board").first).to_contain_text("embedded/reader")
        expect(page.locator("noscript .banner, .banner.plain").first).to_be_visible()
        context.close()


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 800, 390, 320])
def test_nothing_overflows(opener: Opener, demo_page: Path, width: int, scheme: str) -> None:
    with opener(width=width, scheme=scheme) as seen:
        seen.page.goto(demo_page.as_uri())
        open_everything(seen.page)
        wide = seen.page.evaluate(
            "[...document.querySelectorAll('main *')].filter((e) => !e.closest('.scroll, svg, pre,"
            " .unseen, thead, .picture') && e.getBoundingClientRect().right > innerWidth + 1)"
            ".map((e) => e.outerHTML.slice(0, 80))"
        )
        assert wide == []
        assert seen.page.evaluate("document.documentElement.scrollWidth") <= width
        # Where a row is stacked, its counts fill whole lines.
        heads, tops = seen.page.evaluate(
            "[getComputedStyle(document.querySelector('.board thead')).position,"
            " [...document.querySelector('.board tbody tr').querySelectorAll('td[data-name]')]"
            ".map((e) => e.getBoundingClientRect().top)]"
        )
        if heads == "absolute":
            lines = Counter(tops)
            assert len(set(lines.values())) == 1, lines
        seen.assert_quiet()


@pytest.mark.slow
def test_controls_headings_and_tables_have_names(opener: Opener, demo_page: Path) -> None:
    """Every control has a name, headings do not skip a level, tables have scoped headers."""
    with opener() as seen:
        page = seen.page
        page.goto(demo_page.as_uri())
        for control in page.locator("select, input, button:visible").all():
            assert control.evaluate(
                "(e) => !!(e.labels?.[0]?.textContent || e.ariaLabel || e.textContent).trim()"
            )
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].filter((e) => !e.closest('dialog'))"
            ".map((e) => Number(e.tagName[1]))"
        )
        assert levels[0] == 1
        assert levels.count(1) == 1
        assert all(after - before <= 1 for before, after in pairwise(levels))
        assert page.locator("th:not([scope])").count() == 0
        assert page.locator("main svg[role=img]:not(:has(title))").count() == 0


def test_missing_images_are_named(opener: Opener, tmp_path: Path) -> None:
    sheet = (Field("intent", "text"),)
    item = Item("one", "one", {"a": [1]}, Form("Why?", sheet), (Image(tmp_path / "gone.png"),))
    folder = write_run(
        tmp_path / "run",
        make_facts("t/q", "m/1", data={"kind": "release", "checksum": "1"}),
        [item],
        [answer("one", {"a": [1]})],
        (),
        (Score("accuracy", None, 0),),
    )
    build_report([folder], tmp_path / "report.html", ReportSettings())
    with opener() as seen:
        seen.page.goto((tmp_path / "report.html").as_uri())
        expect(seen.page.locator(".lost")).to_contain_text("gone.png")
        expect(seen.page.locator(".lost")).to_contain_text("missing")
        expect(seen.page.locator(".answer .badge")).to_contain_text("no verdict")
        expect(seen.page.locator(".item")).to_contain_text('{"a": [1]}')
        expect(seen.page.locator(".banner")).to_have_count(0)
        seen.assert_quiet()


@pytest.mark.slow
def test_many_items_are_drawn_a_page_at_a_time(opener: Opener, tmp_path: Path) -> None:
    options = tuple(Option(key, f"an option of usual length, {key}") for key in "ABCD")
    form = Form("A question of usual length about a meme?", (Field("answer", "choice", options),))
    items = [
        Item(f"i{n}", f"m{n}", "A", form, tags={"dimension": str(n % 9)}) for n in range(1_500)
    ]
    folders = [
        write_run(
            tmp_path / model,
            make_facts("t/q", f"m/{model}"),
            items,
            [answer(item.id, "ABCD"[place % 4]) for place, item in enumerate(items)],
            (),
            (Score("accuracy", 0.25, 1_500),),
        )
        for model in "xy"
    ]
    build_report(folders, tmp_path / "report.html", ReportSettings())
    assert (tmp_path / "report.html").stat().st_size < 1_500_000
    with opener() as seen:
        seen.page.goto((tmp_path / "report.html").as_uri())
        assert count_items(seen.page) == 1_500
        assert seen.page.locator("*").count() < 2_000
        seen.page.fill("#f-text", "i1499")
        expect(seen.page.locator("#count")).to_have_text("1 of 1,500 items")
        seen.assert_quiet()


def test_a_page_that_cannot_be_written_says_so(demo_runs: list[Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="choose another --out"):
        build_report(demo_runs, tmp_path / "file" / "report.html", ReportSettings(images=False))


@pytest.mark.slow
def test_free_text_shows_its_score_and_its_gold_as_text(tmp_path: Path) -> None:
    run = mm.evaluate(
        "memeintent/intent",
        "baseline/majority",
        out=tmp_path,
        settings=mm.EvaluationSettings(limit=3),
    )
    page = mm.report(run, tmp_path / "report.html", images=False).read_text(encoding="utf-8")
    found = re.search(r'id="data-memeintent-intent">(.*?)</script>', page, flags=re.DOTALL)
    assert found is not None
    data = json.loads(found[1])
    marks = [item["answers"][0]["mark"].removeprefix("rouge l ") for item in data["items"]]
    assert sum(map(float, marks)) / 3 == pytest.approx(run.scores["rouge_l"].value, abs=1e-3)
    golds = [line.item.gold for line in read_items(run.folder)]
    shown = [data["texts"][item["gold"]] for item in data["items"]]
    assert shown == [" / ".join(map(str, gold)) for gold in golds if isinstance(gold, list)]
    took = page.partition("Cost and time")[2]
    assert "call time (s)" in took
    assert re.search(r'<td class="number">0:00:0\d</td></tr>', took), "wall time is told apart"


@pytest.mark.slow
def test_links_to_commands_stay_on_one_line_and_in_their_table(
    opener: Opener, tmp_path: Path
) -> None:
    """M-QUEST's Table 1 has twelve columns of links."""
    mm.paper("mquest", data="sample", parts=["Table 1"]).save(tmp_path / "paper.html")
    with opener() as seen:
        seen.page.goto((tmp_path / "paper.html").as_uri())
        lines = seen.page.evaluate(
            "[...document.querySelectorAll('td a.small')].map((e) => e.getClientRects().length)"
        )
        assert len(lines) > 12
        assert set(lines) == {1}
        wide, shown = seen.page.locator(".scroll").first.evaluate(
            "(e) => [e.scrollWidth, e.clientWidth]"
        )
        assert wide <= shown
