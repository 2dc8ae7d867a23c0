"""The service in a thread, and what a person does before its pages."""

from __future__ import annotations

import base64
import io
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn
from PIL import Image, ImageDraw, ImageFont
from playwright.sync_api import Browser, Page, expect

from memantics.core import fonts
from memantics.serve.app import build_app
from memantics.serve.settings import Reach, ServedModels, ServeSettings
from memantics.web.server import configure, listen
from tests.browser import Watched, watch

WAIT = 60_000  # a busy machine reads an image in seconds, not in tenths of one


@contextmanager
def serve_pages(models: ServedModels) -> Iterator[str]:
    """Serve until the block ends; gives the address."""
    taken = listen("127.0.0.1", 0)
    port = taken.getsockname()[1]
    server = uvicorn.Server(configure(build_app(ServeSettings(Reach(port=port), models)), grace=20))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [taken]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join(20)
        taken.close()


@contextmanager
def visit(browser: Browser, width: int = 1280) -> Iterator[Watched]:
    """A fresh page that is waited for on a busy machine, too."""
    expect.set_options(timeout=WAIT)
    with watch(browser, width) as watched:
        watched.page.set_default_timeout(WAIT)
        yield watched


def assert_at_home(watched: Watched, address: str) -> None:
    """No error, no dialog, and nothing loaded from anywhere but the service."""
    assert watched.errors == []
    assert watched.dialogs == []
    ours = (address, "blob:", "data:", "file:")
    assert [url for url in watched.requests if not url.startswith(ours)] == []


_HAND_OVER = """([kind, name, type, body]) => {
  const bytes = Uint8Array.from(atob(body), (char) => char.charCodeAt(0));
  const given = new DataTransfer();
  if (name) given.items.add(new File([bytes], name, { type }));
  else given.setData("text/uri-list", "https://example.org/meme.png");
  const event = kind === "paste"
    ? new ClipboardEvent("paste", { clipboardData: given, bubbles: true, cancelable: true })
    : new DragEvent(kind, { dataTransfer: given, bubbles: true, cancelable: true });
  document.body.dispatchEvent(event);
}"""


def hand_over(page: Page, kind: str, name: str, data: bytes, media: str = "image/png") -> None:
    """Drop or paste a file; without a name only an address."""
    page.evaluate(_HAND_OVER, [kind, name, media, base64.b64encode(data).decode()])


def draw_text(text: str) -> bytes:
    """A picture that says something, large and plain."""
    image = Image.new("RGB", (1000, 240), "white")
    folder = Path(str(fonts.__file__)).parent
    font = ImageFont.truetype(str(folder / "Baloo2-Bold.ttf"), 56)
    ImageDraw.Draw(image).text((30, 80), text, "black", font)
    out = io.BytesIO()
    image.save(out, "PNG")
    return out.getvalue()


def fits(page: Page) -> bool:
    """Whether nothing sticks out to the right."""
    return bool(page.evaluate("document.documentElement.scrollWidth <= innerWidth"))


def without_kinder(page: Page) -> None:
    """Cut off the slowest part: the page must do without it, and the test is done sooner."""
    page.route("**/studio/kinder*", lambda route: route.abort())
