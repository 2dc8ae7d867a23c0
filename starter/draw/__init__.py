"""Drawing for the starter pack: see README.md beside this file for a tour with examples."""
