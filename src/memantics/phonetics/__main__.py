"""``python -m memantics.phonetics FOLDER``: the figures of this package on a PunMemeCN release."""

import sys

from memantics.phonetics.evaluation import main

sys.exit(main())
