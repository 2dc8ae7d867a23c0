"""Drawing for the sample data: see README.md beside this file for a tour with examples."""
