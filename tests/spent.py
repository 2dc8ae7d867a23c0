"""Run a command, and say how much user CPU time it and its processes took in all."""

from __future__ import annotations

import os
import subprocess
import sys

if __name__ == "__main__":
    done = subprocess.run(sys.argv[1:], check=False)
    print(f"user CPU: {os.times().children_user / 60:.1f} min in all", flush=True)
    sys.exit(done.returncode)
