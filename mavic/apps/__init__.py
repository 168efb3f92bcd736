"""The ways in: the command line, replays, the playground, and studies with people.

`cli` runs one of the `commands`; `plugins` imports modules of the user first, and `console` is where commands write.
`frames` and `recording` are episodes as data; `replay` writes them as pages and GIFs. `robot_log` is the log of a team
on robots as a recording. `playground` is the web application, `participants` runs studies with people, and `web` has
the pages. `reader_tables` are tables about the reader of sentences.
"""
