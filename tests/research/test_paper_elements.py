"""The list of the papers' elements is the one that the pages give."""

from __future__ import annotations

import pytest

from research.paper_elements import NAMES, PAGE, list_elements, write_page

pytestmark = pytest.mark.slow


def test_the_list_is_that_of_the_pages_and_compares_official_prompts_only() -> None:
    assert PAGE.read_text(encoding="utf-8") == write_page()
    found = list_elements()
    assert {one.paper for one in found} == set(NAMES.values())
    for one in found:
        if one.source == "runs" and not one.compared.startswith("never"):
            assert one.compared.startswith("the authors' prompts"), one
