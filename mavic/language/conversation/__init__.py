"""Splits what people type into instructions.

`speech.parse` finds the addressed agents and the parts of a line. `hearing.hear` and `hearing.clauses` turn the words
of a part into a kind of instruction and the phrase that a team hears.
"""
