"""The web face: a service for programs, the studio and browsing for people."""
