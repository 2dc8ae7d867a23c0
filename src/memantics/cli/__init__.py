"""The command line interface: flags, tables and exit codes over the packages' public functions."""
