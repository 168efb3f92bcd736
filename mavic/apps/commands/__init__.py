"""The commands of `mavic`, one family per file. Each command calls functions of the library and decides nothing."""
