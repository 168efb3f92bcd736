"""The commands of `mavic`, one per file. Each command is a record of options whose `run` calls the library.

`command` is what all commands share, `options` makes options and their help from records, and `config_file` is the
options of `mavic train` as TOML.
"""
