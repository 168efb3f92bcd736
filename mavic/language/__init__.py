"""Understands what people write: sentences become vectors, and kinds of instruction with probabilities.

text          normalises texts
encoder       the frozen encoders
vectors       vectors of texts: shipped, cached or encoded
lexicon       a world's phrases as arrays
heard         what a team hears of a phrase
reader        sentence → kind of instruction, or unsure
conversation  a typed line, in view of what holds → instructions, an end, or a question back
"""
