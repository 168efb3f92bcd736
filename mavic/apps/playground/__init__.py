"""The playground: people talk to teams in a browser.

`catalog` lists the teams. `session` is what one page watches, `conversation` is how people talk to its teams, and
`orders` is what they have asked for. `answers` is what they are told about a sentence.
`messages` is what a page and the server say to each other, `limits` bounds what pages may ask for. `connection` is one
open page, `workers` are the threads, `heaps` gives memory back, and `server` is the web application. `seen` says what
an episode shows, `story` makes the first minute of a visitor, and `export` writes recorded episodes as pages.
"""
