"""Draws from logits, row by row, against the shares they should have."""

from __future__ import annotations

import pytest

from memantics.core.errors import InputError, UnknownName
from memantics.models.local.runtime import RowDecoding, RowLimits, RowSampler, cut_row
from memantics.models.local.settings import LocalSettings, read_settings

pytestmark = pytest.mark.slow

torch = pytest.importorskip("torch", reason="torch is not installed (extra local)")


def draw_many(logits: list[float], sampler: RowSampler, times: int) -> list[float]:
    scores = torch.tensor([logits])
    counts = torch.zeros(len(logits))
    for _ in range(times):
        counts[sampler(None, scores)[0].argmax()] += 1
    return [float(count) / times for count in counts]


def test_draws_have_the_shares_of_the_softmax() -> None:
    logits, temperature = [2.0, 1.0, 0.0, -1.0], 1.7
    found = draw_many(logits, RowSampler([RowDecoding(temperature, 5)], "cpu"), 20_000)
    expected = torch.softmax(torch.tensor(logits) / temperature, -1).tolist()
    # Four standard errors of a share at 20,000 draws are 0.014.
    assert found == pytest.approx(expected, abs=0.014)


def test_top_k_and_top_p_cut_the_tail() -> None:
    logits = [2.0, 1.0, 0.0, -1.0]
    shares = draw_many(logits, RowSampler([RowDecoding(1.0, 1)], "cpu", top_k=2), 2000)
    assert shares[2:] == [0.0, 0.0]
    assert min(shares[:2]) > 0
    # The first two hold 0.644 and 0.237: a share of 0.7 needs both, one of 0.5 the first alone.
    shares = draw_many(logits, RowSampler([RowDecoding(1.0, 1)], "cpu", top_p=0.7), 2000)
    assert shares[2:] == [0.0, 0.0]
    assert min(shares[:2]) > 0
    shares = draw_many(logits, RowSampler([RowDecoding(1.0, 1)], "cpu", top_p=0.5), 200)
    assert shares == [1.0, 0.0, 0.0, 0.0]


def test_cold_rows_are_left_as_they_are() -> None:
    scores = torch.tensor([[1.0, 2.0], [1.0, 2.0]], dtype=torch.bfloat16)
    assert RowSampler([RowDecoding(0.0, 1), RowDecoding(0.0, 2)], "cpu")(None, scores) is scores
    mixed = RowSampler([RowDecoding(0.0, 1), RowDecoding(1.0, 2)], "cpu")(None, scores)
    assert mixed[0].tolist() == [1.0, 2.0]
    assert mixed[1].tolist() != [1.0, 2.0]


def test_rows_end_at_their_own_length_or_all_at_once() -> None:
    stopping = False
    limits = RowLimits(10, [1, 3], lambda: stopping, "cpu")
    seen = [limits(torch.zeros(2, 10 + n), None).tolist() for n in (1, 2, 3)]
    assert seen == [[True, False], [True, False], [True, True]]
    stopping = True
    assert limits(torch.zeros(2, 11), None).tolist() == [True, True]


def test_what_a_row_keeps() -> None:
    ends = frozenset({2, 9})
    assert cut_row([9, 1, 1], 3, ends) == ([], "stop", 1)
    assert cut_row([], 3, ends) == ([], "length", 0)
    assert cut_row([1, 1, 1], 3, frozenset()) == ([1, 1, 1], "length", 3)


def test_settings_are_read_and_bad_ones_refused() -> None:
    read = read_settings(
        {"device": "cuda:1", "dtype": "bfloat16", "batch": "16", "top_p": "0.9", "template.a": "x"}
    )
    assert read == LocalSettings(
        device="cuda:1", dtype="bfloat16", batch=16, top_p=0.9, template={"a": "x"}
    )
    assert read_settings({"trust_remote_code": "true"}).trust_remote_code
    assert not LocalSettings().trust_remote_code
    for name, value in [
        ("device", "gpu"),
        ("batch", "0"),
        ("batch", "many"),
        ("temperature", "nan"),
        ("top_p", "0"),
        ("attn", "a b"),
        ("trust_remote_code", "yes"),
        ("max_pixels", "-1"),
    ]:
        with pytest.raises(InputError, match=f"--param {name}={value}"):
            read_settings({name: value})
    with pytest.raises(UnknownName):
        read_settings({"dtype": "int4"})
    with pytest.raises(UnknownName, match=r"'template\.'"):
        read_settings({"template.": "x"})
