"""Images from the service and the studio are marked; the studio labels what it offers."""

from __future__ import annotations

import base64

import pytest

from memantics.core.marks import read_mark
from memantics.core.samples import image_path
from tests.kinder import MODEL
from tests.marks.reading import AI
from tests.serve.site import Site

pytestmark = pytest.mark.slow


def test_the_service(site: Site) -> None:
    file = {"image": ("meme.png", image_path("en-035").read_bytes(), "image/png")}
    asked = {"model": MODEL}
    with site.client() as client:
        plain = client.post("/v1/reappraise", files=file, data=asked)
        labelled = client.post("/v1/reappraise", files=file, data={**asked, "label": "true"})
    pictures = []
    for sent in (plain, labelled):
        result = site.ended(sent.headers["location"])["reappraisal"]
        assert isinstance(result, dict)
        pictures.append(base64.b64decode(str(result["image"]).partition(",")[2]))
    heights = []
    for picture in pictures:
        mark = read_mark(picture)
        assert mark is not None
        assert mark.source == AI
        heights.append(int.from_bytes(picture[20:24], "big"))
    assert heights[0] < heights[1]


def test_the_studio_labels_what_it_offers(site: Site) -> None:
    data = image_path("en-035").read_bytes()
    headers = {"x-memantics": "studio", "content-type": "image/png"}
    with site.client() as client:
        found = [
            client.post(f"/studio/kinder{query}", content=data, headers=headers).json()
            for query in (f"?model={MODEL}", f"?model={MODEL}&label=false")
        ]
    pictures = [base64.b64decode(one["picture"].partition(",")[2]) for one in found]
    marks = [read_mark(picture) for picture in pictures]
    assert [mark and mark.source for mark in marks] == [AI, AI]
    labelled, plain = (int.from_bytes(picture[20:24], "big") for picture in pictures)
    assert labelled > plain == int.from_bytes(data[20:24], "big")
