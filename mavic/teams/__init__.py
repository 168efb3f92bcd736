"""Trained teams: how they act, their files, and one team in one world, tick by tick.

The playground, replays, bridges and exports act through this room.

    team      TeamPolicy: a team decides
    file      save and load a team; the hash of its weights
    facts     the description beside the weights, checked
    networks  the networks that a description names
    shipped   shipped teams by name: box_pushing/mavic
    episode   Episode: its state between two ticks; Moment, Cue
    stage     open_stage, start, say, advance, play: an episode that people can talk to
"""
