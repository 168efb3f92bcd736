"""From what people type to what is done, in view of what holds.

- `deciding`: a line to a decision; `clauses`: one clause of it; `decision`: instructions for agents, now or later, an
  end, or a question back.
- `speech`: what a line is made of: whom it addresses, what comes after what, what it corrects or adds.
- `cast`: the agents and things that people speak of, and the kinds that are about a thing.
- `cues`: signs of what a sentence does with an act.
- `hearing`: the words of one instruction to a kind and the phrase that a team hears.
- `settling`: which instructions then hold: those that add up, those that are replaced, those that do not go together.
- `sentences`: scores sentences whose meaning is known.
"""
