"""The reader: says which kind of instruction a sentence asks for, or that it is unsure.

`read.understand` answers with a trained `model.Head`. `phrase_file` reads `phrases.toml`, `spelling` corrects typing
errors, `acts` fills frames with what can be done in a world, `own_file` makes the training set of an instruction file of
one's own, `guard` tells releases and remarks by their form, `data` and `fit` train a head. `measure` and `ablation` make the tables of `mavic words`.
"""
