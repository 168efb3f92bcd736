"""Sentences to vectors, and sentences to kinds of instruction."""
