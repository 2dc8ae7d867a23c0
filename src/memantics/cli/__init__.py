"""The command line interface: flags, tables and exit codes for the packages' public functions."""
