"""The studio in a browser: ways in, parts, veil, slider, languages, saving, hostile memes."""

from __future__ import annotations

import base64
import io
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from memantics.core.errors import ImageError, InputError
from memantics.core.labels import read_choices
from memantics.core.samples import image_path
from memantics.models import fake
from memantics.moderation.detect import Detector
from memantics.moderation.examples import Example
from memantics.serve.settings import ServedModels
from memantics.serve.studio.routes import StudioRecord, check_picture, is_harmful
from memantics.workbench.studio import Studio, find_homophones, judge, tell_sample_meaning
from tests.browser import Watched, launch, watch
from tests.kinder import MODEL, reply
from tests.serve.visiting import (
    WAIT,
    assert_at_home,
    draw_text,
    fits,
    hand_over,
    serve_pages,
    visit,
    without_kinder,
)

PUN = image_path("CN90001")
HOSTILE = '<img src=x onerror=alert(1)>"].png'


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with launch() as opened:
        yield opened


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MEMANTICS_HOME", str(folder))
        patch.setitem(fake.SCRIPTS, "kinder", reply)
        yield folder


@pytest.fixture(scope="module")
def address(home: Path) -> Iterator[str]:
    with serve_pages(ServedModels()) as served:
        yield served


@pytest.fixture(scope="module")
def connected(home: Path) -> Iterator[str]:
    """A service with a model that has replies about some memes."""
    with serve_pages(ServedModels(models=(MODEL,))) as served:
        yield served


@pytest.fixture
def seen(browser: Browser, address: str) -> Iterator[Watched]:
    with visit(browser) as watched:
        yield watched
        assert_at_home(watched, address)


@pytest.mark.slow
def test_chinese_shows_without_a_font_of_the_machine(seen: Watched, address: str) -> None:
    load = """async () => (await document.fonts.load('16px "Chinese of Memantics"', '狮'))
        .map((face) => face.status)"""
    seen.page.goto(address)
    assert seen.page.evaluate(load) == ["loaded"]


@pytest.mark.slow
def test_a_dropped_meme_is_read_heard_judged_and_declined(seen: Watched, address: str) -> None:
    page = seen.page
    page.goto(address)
    hand_over(page, "dragenter", "x.png", b"")
    expect(page.locator("#over")).to_be_visible()
    hand_over(page, "drop", "lunch.png", PUN.read_bytes())
    expect(page.locator("#over")).to_be_hidden()
    expect(page.locator("#name")).to_have_text("lunch.png")
    expect(page.locator("#part-text .said")).to_have_text("最近有点键忘 ")
    expect(page.locator("#part-text .by")).to_contain_text("RapidOCR")
    # The box lies on the picture and is lit with its line.
    assert page.locator("#boxes rect:not(.other)").count() == 1
    page.locator("#part-text .said .line").focus()
    expect(page.locator("#boxes rect:not(.other)")).to_have_class("lit")
    box, image = (
        page.locator(name).bounding_box() for name in ("#boxes rect:not(.other)", "#picture")
    )
    assert box is not None
    assert image is not None
    assert image["x"] <= box["x"] < box["x"] + box["width"] <= image["x"] + image["width"]
    assert box["y"] > image["y"] + image["height"] / 2

    expect(page.locator("#part-sound .answer")).to_have_text("最近有点健忘")
    expect(page.locator("#part-sound mark")).to_have_text("键")
    expect(page.locator("#part-sound .by")).to_contain_text(
        re.compile(r"homophone reader.*confidence \d+ %")
    )
    badge = page.locator("#part-harm .verdict")
    expect(badge).to_have_text("sample detector, for demonstration only")
    expect(badge).to_have_class("verdict sample")
    expect(page.locator("#part-harm")).to_contain_text(re.compile("Result of the sample detector"))
    expect(page.locator("#part-harm .by")).to_contain_text("sample detector")
    assert page.locator("#part-harm .letters i").all_inner_texts() == list("最近有点键忘")
    assert page.locator("#part-harm .letters i[class]").count() > 0
    # The sample detector hides nothing.
    expect(page.locator("body")).not_to_have_class("veil")

    # What needs a model says so, and how to connect one.
    expect(page.locator("#no-model")).to_contain_text("none is connected")
    expect(page.locator("#no-model code")).to_contain_text("memantics serve --model openai/NAME")

    # It is declined with the reason, which names no flag.
    declined = page.locator("#part-kinder").get_by_text("No kinder version could be made")
    expect(declined).to_contain_text("new captions need a model, and this service has none")
    assert page.locator("#part-kinder").get_by_role("button", name="Create a version").count() == 0
    page.goto(f"{address}/?lang=zh")
    hand_over(page, "drop", "lunch.png", PUN.read_bytes())
    expect(page.locator("#part-kinder")).to_contain_text("改写文字需要模型，而本服务没有接入模型")
    page.goto(f"{address}/?lang=en")
    hand_over(page, "drop", "lunch.png", PUN.read_bytes())
    expect(page.locator("#part-text .said")).to_have_text("最近有点键忘 ")

    page.get_by_role("button", name="Another meme").click()
    expect(page.get_by_role("heading", name="Analyse a meme")).to_be_visible()
    assert page.locator("#picture").get_attribute("src") is None


def move_slider(page: Page) -> None:
    """Compare before and after with the keyboard."""
    slider = page.get_by_role("slider", name="Slide to compare before and after")
    before = page.locator(".slide .before")
    half = before.evaluate("one => getComputedStyle(one).clipPath")
    slider.focus()
    page.keyboard.press("Home")
    assert slider.input_value() == "0"
    page.keyboard.press("ArrowRight")
    assert slider.input_value() == "1"
    assert before.evaluate("one => getComputedStyle(one).clipPath") != half
    expect(page.locator("#status")).not_to_be_empty()


@pytest.mark.slow
def test_versions_are_offered_taken_taken_back_and_written_in_own_words(
    browser: Browser, home: Path, tmp_path: Path
) -> None:
    file = tmp_path / "preferences.jsonl"
    with (
        serve_pages(ServedModels(models=(MODEL,), preferences=file)) as address,
        visit(browser) as watched,
    ):
        page = watched.page
        page.goto(f"{address}/#en-012")
        declined = page.locator("#part-kinder").get_by_text("No kinder version could be made")
        expect(declined).to_contain_text("new captions need a model; choose one of this service")
        assert "Nothing you bring here is kept" not in page.inner_text("body")
        page.get_by_role("button", name="Create a version with fake/kinder").click()
        expect(page.locator("#part-kinder .by")).to_contain_text("plan by fake/kinder")
        expect(page.get_by_text("without the image and your name")).to_be_visible()
        move_slider(page)
        expect(page.locator("#part-kinder")).to_contain_text("angry → calm")
        page.get_by_role("button", name="Show other versions").click()
        offered = page.locator(".version")
        expect(offered.nth(1)).to_be_visible(timeout=3 * WAIT)  # all versions are drawn first
        count = offered.count()
        offered.nth(1).click()
        expect(offered.nth(1)).to_have_attribute("aria-pressed", "true")
        page.get_by_role("button", name="Choose this version").click()
        expect(page.locator(".taken")).to_have_text("You chose version 2.")
        page.get_by_role("button", name="Undo").click()
        expect(page.locator(".taken")).to_have_count(0)
        page.get_by_text("Write your own captions").click()
        mine = "PEOPLE WHO HIT REPLY ALL\nWE WAVE BACK, AND SO DOES EVERYONE"
        page.locator(".own-words textarea").fill(mine)
        page.get_by_role("button", name="Create the image").click()
        expect(page.get_by_text("(yours)")).to_be_visible()
        expect(page.locator("#part-kinder .said")).to_have_text(mine.replace("\n", " "))
        expect(page.locator("#part-kinder .by")).to_contain_text("your captions")
        page.get_by_role("button", name="Choose this version").click()
        expect(page.locator(".taken")).to_have_text(f"You chose version {count + 1}.")
        with page.expect_download() as got:
            page.get_by_role("button", name="Save as JSON").click()
        got.value.save_as(tmp_path / "meme.json")
        # Words that do not fit are refused with the reason, and nothing is lost.
        page.locator(".own-words textarea").fill(f"{'long ' * 90}\nlonger")
        page.get_by_role("button", name="Create the image").click()
        expect(page.get_by_role("alert")).to_contain_text("The image could not be created")
        expect(offered.first).to_be_visible()
        assert fits(page)
        assert_at_home(watched, address)
    (last,) = read_choices(file).values()
    assert (last.meme, last.chosen, last.undone) == ("en-012", count + 1, [2])
    assert (last.words, last.candidates[-1].by) == (mine, "a person")
    record = StudioRecord.model_validate_json((tmp_path / "meme.json").read_bytes())
    assert record.kinder is not None
    assert len(record.kinder.versions) == count + 1


@pytest.mark.slow
def test_a_text_unlike_the_training_texts_is_left_to_people(
    browser: Browser, home: Path, tmp_path: Path
) -> None:
    texts = ("what a lovely day", "have a nice week")
    examples = [Example(str(n), texts[n % 2], label=n % 2) for n in range(40)]
    file = Detector.train(examples, "ridge").save(tmp_path / "own.zip")
    with serve_pages(ServedModels(detector=file)) as address, visit(browser) as watched:
        page = watched.page
        far = "the plumber is looking for his frogs"
        for text, verdict in (
            ("have a nice week", "harmful"),
            ("what a lovely day", "no harm detected"),
            (far, "needs human review"),
        ):
            page.goto(address)
            hand_over(page, "drop", "a.png", draw_text(text))
            expect(page.locator("#part-harm .verdict")).to_have_text(verdict)
            note = page.locator("#part-harm").get_by_text("it needs human review")
            expect(note).to_have_count(int(text == far))
        with page.expect_download() as got:
            page.get_by_role("button", name="Save as a web page").click()
        got.value.save_as(tmp_path / "meme.html")
    text = (tmp_path / "meme.html").read_text(encoding="utf-8")
    assert '<span class="verdict doubt">needs human review</span>' in text
    assert "it needs human review" in text


@pytest.mark.slow
def test_a_pasted_meme_and_one_chosen_from_a_file(seen: Watched, address: str) -> None:
    page = seen.page
    without_kinder(page)
    page.goto(address)
    hand_over(page, "paste", "image.png", PUN.read_bytes())
    expect(page.locator("#part-text .said")).to_have_text("最近有点键忘 ")
    page.get_by_role("button", name="Another meme").click()
    page.set_input_files("#file", str(PUN))
    expect(page.locator("#name")).to_have_text("CN90001.png")
    expect(page.locator("#part-sound .answer")).to_have_text("最近有点健忘")
    seen.errors.clear()  # of the part that was cut off


@pytest.mark.slow
def test_what_cannot_be_looked_at_says_why(seen: Watched, address: str) -> None:
    page = seen.page
    page.goto(address)
    hand_over(page, "drop", "", b"")
    expect(page.get_by_role("alert")).to_contain_text("does not load images from other sites")
    hand_over(page, "drop", "notes.txt", b"hello", "text/plain")
    expect(page.get_by_role("alert")).to_contain_text("not a supported image")
    expect(page.locator("#start")).to_be_visible()
    # A damaged file: one part fails, says what to do, and offers another try.
    hand_over(page, "drop", "half.png", PUN.read_bytes()[:4000])
    expect(page.locator("#part-text .note.bad")).to_contain_text("The file is damaged")
    expect(page.locator("#part-text").get_by_role("button", name="Try again")).to_be_visible()
    expect(page.locator("#why")).to_have_text("It could not be scored")
    blank = io.BytesIO()
    Image.new("RGB", (300, 200), "teal").save(blank, "PNG")
    hand_over(page, "drop", "blank.png", blank.getvalue())
    expect(page.locator("#part-text .body")).to_have_text("No text was found in the image.")
    expect(page.locator("#part-harm .body")).to_contain_text("was not scored")
    seen.errors[:] = [text for text in seen.errors if "422" not in text]  # the browser's own log


@pytest.mark.slow
def test_a_harmful_meme_is_blurred_until_asked_for_and_opens_by_link(
    seen: Watched, address: str
) -> None:
    page = seen.page
    page.goto(address)
    pick = page.locator(".pick[data-meme=en-004]")
    assert "blur" in pick.locator("img").evaluate("one => getComputedStyle(one).filter")
    pick.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#name")).to_be_focused()
    assert page.url.endswith("#en-004")
    picture = page.locator("#picture")
    expect(page.locator("#part-harm .verdict")).to_be_visible()
    assert "blur" in picture.evaluate("one => getComputedStyle(one).filter")
    expect(page.locator("#why")).to_have_text("It may be harmful")
    # The pack's own annotations stand for a model, and say whose they are.
    expect(page.locator("#part-meaning .by")).to_contain_text("the authors of the sample data")
    assert page.locator(".stage .wide .card").count() > 3
    card = page.locator(".stage .wide .card").first
    card.focus()
    page.keyboard.press("Enter")
    expect(page.locator(".panel .entry")).to_be_visible()
    page.get_by_role("button", name="Show the image").press("Enter")
    expect(page.locator("body")).not_to_have_class("veil")
    page.get_by_role("button", name="Blur it again").click()
    expect(page.locator("body")).to_have_class("veil")


@pytest.mark.slow
def test_page_and_data_are_saved_on_request(
    browser: Browser, connected: str, tmp_path: Path
) -> None:
    with visit(browser) as watched:
        save_page_and_data(watched.page, browser, connected, tmp_path)
        assert_at_home(watched, connected)


def save_page_and_data(page: Page, browser: Browser, connected: str, tmp_path: Path) -> None:
    page.goto(f"{connected}/?lang=zh#CN90008")
    expect(page.locator("#part-kinder")).to_contain_text("改写文字需要模型，请选择本服务的一个模型")
    page.get_by_role("button", name="用 fake/kinder 生成版本").click()
    expect(page.locator(".slide")).to_be_visible()
    with page.expect_download() as got:
        page.get_by_role("button", name="保存为 JSON").click()
    assert got.value.suggested_filename == "CN90008.json"
    got.value.save_as(tmp_path / "meme.json")
    record = StudioRecord.model_validate_json((tmp_path / "meme.json").read_bytes())
    assert None not in (record.text, record.sound, record.harm, record.kinder)
    told = record.model_dump()
    assert told["text"]["text"] == "你是来找茶的吧"
    assert told["sound"]["reading"] == "你是来找茬的吧"
    assert told["harm"]["sample"]
    assert told["kinder"]["status"] == "done"
    assert record.meanings[0].by == "sample data"
    with page.expect_download() as got:
        page.get_by_role("button", name="保存为网页").click()
    got.value.save_as(tmp_path / "meme.html")
    with watch(browser) as saved:
        saved.page.goto((tmp_path / "meme.html").as_uri())
        text = saved.page.inner_text("body")
        assert "你是来找茬的吧" in text
        assert "谐音识别" in text
        assert "示例检测器" in text
        assert saved.page.locator(".picture img").count() == 2
        drawing = saved.page.locator(".wide svg.drawing").bounding_box()
        assert drawing is not None
        assert drawing["width"] > 700
        saved.assert_quiet()


@pytest.mark.slow
def test_phones_and_both_languages(browser: Browser, address: str) -> None:
    with visit(browser, 390) as watched:
        page = watched.page
        without_kinder(page)
        page.goto(address)
        assert fits(page)
        page.get_by_role("link", name="中文").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("分析一张表情包")
        assert page.locator("html").get_attribute("lang") == "zh-CN"
        page.goto(f"{address}/#CN90001")  # the choice is kept
        expect(page.locator("#part-harm .verdict")).to_have_text("示例检测器，仅作演示")
        expect(page.locator(".stage .narrow .drawing")).to_be_visible()
        assert page.locator(".narrow text.kicker").first.inner_html() == "文字"
        # One part failed; it says so, and the others are there.
        expect(page.locator("#part-kinder .note.bad")).to_contain_text("无法连接服务")
        for width in (390, 320):
            page.set_viewport_size({"width": width, "height": 800})
            assert fits(page)
            picture = page.locator("#picture").bounding_box()
            assert picture is not None
            assert 0 <= picture["x"] < picture["x"] + picture["width"] <= width
        watched.errors[:] = [text for text in watched.errors if "ERR_FAILED" not in text]
        assert_at_home(watched, address)


@pytest.mark.slow
def test_no_text_of_a_meme_or_its_name_becomes_markup(
    seen: Watched, browser: Browser, address: str, tmp_path: Path
) -> None:
    page = seen.page
    without_kinder(page)
    page.goto(address)
    hand_over(page, "drop", HOSTILE, draw_text("<script>alert(1)</script>"))
    expect(page.locator("#name")).to_have_text(HOSTILE)
    expect(page.locator("#part-text .said")).to_contain_text("alert")
    expect(page.locator("#part-harm")).to_contain_text("<script>alert(1)</script>")
    assert page.locator("main script:not([type])").count() == 0
    with page.expect_download() as got:
        page.get_by_role("button", name="Save as a web page").click()
    assert "<" not in got.value.suggested_filename
    got.value.save_as(tmp_path / "saved.html")
    with watch(browser) as saved:
        saved.page.goto((tmp_path / "saved.html").as_uri())
        assert saved.page.locator("h1").inner_text() == HOSTILE
        saved.assert_quiet()
    # Even our own script could not make markup of a text.
    refused = page.evaluate(
        "() => { try { document.body.innerHTML = '<b>'; } catch (e) { return e.name; } }"
    )
    assert refused == "TypeError"
    known = ("TrustedHTML", "ERR_FAILED")
    seen.errors[:] = [text for text in seen.errors if not any(word in text for word in known)]


def test_nothing_is_kept_and_other_sites_are_refused(address: str, home: Path) -> None:
    kept = {path.name for path in home.rglob("*") if path.is_file()}
    assert {name for name in kept if not name.startswith(("sample-", "jobs.sqlite"))} == set()
    with closing(sqlite3.connect(home / "serve" / "jobs.sqlite")) as jobs:
        assert jobs.execute("SELECT count(*) FROM jobs").fetchone() == (0,)
    with urlopen(address) as page:
        policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    request = Request(f"{address}/studio/text", PUN.read_bytes(), method="POST")
    with pytest.raises(HTTPError) as refused:
        urlopen(request)
    with refused.value:
        assert refused.value.code == 403
    # Choices are kept only where whoever runs the service names a file.
    ours = {"x-memantics": "studio", "content-type": "application/json"}
    request = Request(f"{address}/studio/choice", b"{}", ours, method="POST")
    with pytest.raises(HTTPError) as refused:
        urlopen(request)
    with refused.value:
        assert refused.value.code == 404


def test_parts_at_their_edges(home: Path) -> None:
    studio = Studio(Detector.load_sample())
    assert judge(studio, "", "en").status == "not_scored"
    assert judge(studio, "a cat", "en").status == "scored"
    # Reasons without a sentence of their own on the page come in its language.
    english = judge(studio, "a cat", "en", unread=2)
    chinese = judge(studio, "a cat", "en", unread=2, page_language="zh")
    assert "2 regions of text were not read" in english.other_reason
    assert "有 2 处文字未识别" in chinese.other_reason
    assert not re.search("[a-z]{3}", chinese.other_reason)
    assert find_homophones("", "en").status == "empty"
    assert find_homophones("un chat", "fr").status == "unsupported"
    assert find_homophones("好的", "zh").status == "found"


def test_whose_verdict_blurs_a_saved_page() -> None:
    def blurs(**parts: object) -> bool:
        return is_harmful(StudioRecord.model_validate({"name": "a", "picture": "", **parts}))

    verdict = {"status": "scored", "by": "d", "harmful": True}
    assert blurs(harm={**verdict, "sample": False})
    assert not blurs(harm={**verdict, "sample": True})
    assert not blurs(harm={**verdict, "sample": False, "harmful": False})
    assert blurs(meanings=[tell_sample_meaning("en-004")])
    assert not blurs(meanings=[tell_sample_meaning("en-030")])


def test_a_saved_picture_must_be_one() -> None:
    with pytest.raises(InputError, match="is not a data URL"):
        check_picture("https://example.org/x.png")
    with pytest.raises(ImageError):
        check_picture("data:image/svg+xml;base64,PHN2Zz4=")
    body = base64.b64encode(PUN.read_bytes()).decode()
    assert check_picture(f"data:text/html;base64,{body}") == f"data:image/png;base64,{body}"
