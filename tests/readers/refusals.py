"""What readers refuse."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from memantics.core.errors import InputError


def refusal(read: Callable[[], object], kind: type[InputError] = InputError) -> str:
    """Read what must be refused; return the one line that says why."""
    with pytest.raises(kind) as caught:
        read()
    assert "\n" not in str(caught.value)
    return str(caught.value)
