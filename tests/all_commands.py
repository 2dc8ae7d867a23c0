"""Imports the module of every command: for the process from which commands are forked."""

import gc

from memantics.cli.main import make_app

make_app(lazy=False)
gc.freeze()  # a fork that searched these modules for garbage would copy them
