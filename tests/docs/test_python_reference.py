"""Public Python names explain themselves: real parameters, meanings, errors and an example."""

from __future__ import annotations

import inspect
import pydoc
import re
from typing import Any

import pytest
from docs.python_reference import (
    list_fields,
    list_functions,
    list_parameters,
    list_settings,
    python_page,
    read_docstring,
)

import memantics as mm
from memantics.core import errors

FUNCTIONS = dict(list_functions())
# Small helpers of the modules ``build`` and ``samples`` that their verbs take or return; they have
# a summary and no example.
WITHOUT_EXAMPLE = {
    "build.sample_questions": "a verb of the command line alone",
    "build.make_extract_settings": "makes the settings of build.knowledge",
    "build.read_extract_settings": "makes the settings of build.knowledge",
    "build.with_dimensions": "changes the settings of build.knowledge",
    "build.with_retrieval": "changes the settings of build.knowledge",
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_public_function_names_every_parameter(name: str) -> None:
    kinds = {one.name: one.kind for one in inspect.signature(FUNCTIONS[name]).parameters.values()}
    open_ended = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    assert [key for key, kind in kinds.items() if kind in open_ended] == []


@pytest.mark.parametrize("name", sorted(FUNCTIONS.keys() - WITHOUT_EXAMPLE.keys()))
def test_a_public_function_documents_parameters_result_and_an_example(name: str) -> None:
    function = FUNCTIONS[name]
    said = read_docstring(function)
    twin = FUNCTIONS.get(name.removesuffix("_async"))
    assert said.text.strip(), "no summary"
    assert re.search(r"^>>> ", said.example, re.MULTILINE), "no example"
    if name.endswith("_async") and f":func:`{name.removesuffix('_async')}`" in said.text:
        assert twin is not None
        assert (
            inspect.signature(function).parameters.keys()
            == inspect.signature(twin).parameters.keys()
        )
        return
    names = [key for key, _, _, _ in list_parameters(function)]
    assert list(said.entries) == names, "Args name the parameters in their order"
    assert said.returns, "no Returns"
    assert said.raises or not names, "no Raises"


def test_an_exception_is_still_needed() -> None:
    assert WITHOUT_EXAMPLE.keys() <= FUNCTIONS.keys()
    assert [
        name for name in WITHOUT_EXAMPLE if ">>>" in read_docstring(FUNCTIONS[name]).example
    ] == []


def test_examples_of_errors_are_errors_of_ours() -> None:
    named = {error for function in FUNCTIONS.values() for error in read_docstring(function).raises}
    assert {error for error in named if not hasattr(errors, error)} == set()


@pytest.mark.parametrize("name", [name for name, _ in list_settings()])
def test_every_field_of_a_settings_record_has_a_meaning(name: str) -> None:
    fields = list(list_fields(dict(list_settings())[name]))
    assert [key for key, _, _, meaning in fields if not meaning.strip()] == []


def test_settings_records_are_found_by_the_parameters_that_take_them() -> None:
    found = dict(list_settings())
    assert {"CallSettings", "EvaluationSettings", "AnalyzeSettings"} <= found.keys()
    defaults = {key: default for key, _, default, _ in list_fields(found["CallSettings"])}
    assert defaults["timeout"] == "300.0"
    assert defaults["params"] == "{}"


@pytest.mark.parametrize("name", ["analyze", "evaluate", "reappraise", "detect_pun"])
def test_help_shows_every_parameter_with_its_default(name: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(mm, name)))
    for one in inspect.signature(getattr(mm, name)).parameters.values():
        assert re.search(rf"\b{one.name}:", shown.partition("\n\n")[2].partition(") ->")[0])
    for section in ("Args:", "Returns:", "Raises:", "Example:"):
        assert section in shown


def test_a_docstring_without_sections_documents_nothing() -> None:
    def weigh(meme: str, scale: int = 1, **options: Any) -> None:
        """Weigh a meme. ``scale`` is in grams."""

    assert read_docstring(weigh).entries == {}
    assert [meaning for _, _, _, meaning in list_parameters(weigh)] == ["", "", ""]


def test_the_page_is_the_same_wherever_it_is_made() -> None:
    page = python_page("")
    assert " at 0x" not in page
    assert "PosixPath" not in page.replace("\nPosixPath(", "")  # results of examples alone
    assert (
        "| `concurrency` | `int` | `32` | Maximum number of model calls at the same time. |" in page
    )
