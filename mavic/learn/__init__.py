"""Learning: from ticks to parameters. No environments and no instruction files."""
