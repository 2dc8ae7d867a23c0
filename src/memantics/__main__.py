"""``python -m memantics``: the command line."""

from memantics.cli.main import main

if __name__ == "__main__":
    main()
