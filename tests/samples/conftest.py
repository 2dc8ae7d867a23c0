"""The drawing code is not part of the installed package: put the repository on the path."""

from __future__ import annotations

import sys

from tests.places import ROOT

if str(ROOT) not in sys.path:
    sys.path.insert(0, str(ROOT))
