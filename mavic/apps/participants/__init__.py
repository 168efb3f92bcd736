"""Studies with people: `mavic play --study plan.toml`.

`plan` reads the plan, and `balance` makes the order of worlds and teams for each person. `records` are the files of a
study. `kitchen` is one task with the people in it, `messages` is what a page and the server say to each other, `people`
are those who take part, `screens` is what each sees, and `conduct` leads them through the study. `server` is the web
application. `tables` writes records as CSV.
"""
