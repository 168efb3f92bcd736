"""The playground: teams to talk to in a browser (`catalog`: who plays; `visit`: one page's episode;
`server`: the door)."""
