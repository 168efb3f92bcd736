"""The ways in: the command line, replays and the playground."""
