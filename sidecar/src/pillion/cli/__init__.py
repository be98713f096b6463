"""The command line: for people tables and colours, for programs JSON."""
