"""The playground: people talk to teams in a browser.

`catalog` lists the teams, `session` is what one page watches, `messages` is what a page and the server say to each
other, `connection` is one open page, `limits` bounds what pages may ask for, and `server` is the web application.
"""
