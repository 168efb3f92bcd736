"""Evaluation: trained teams play test episodes, and their score lines are made.

- `evaluate`: plays the episodes and makes the score lines.
- `merit`: what the members of a population are chosen by.
- `metrics`: the table of metrics.
- `collapse`: kinds under which a team hardly does its task any more.
- `quantities`: what metrics sum over episodes.
- `judge`: any callable plays the same episodes and gets an ordinary record.
- `unseen_phrases`: instructions in phrases that teams were not trained on.
- `infeasible`: requests that no team can fulfil.
"""
