"""The reader: says which kind of instruction a sentence asks for, or that it is unsure.

`read.understand` answers with a trained `model.Head`. `phrase_file` reads `phrases.toml`, `spelling` corrects typing
errors, `acts` fills frames with what can be done in a world, `data` and `fit` train a head. For an instruction file of
a user `own_file` makes the training set, and `guard` tells releases and remarks by their form. `measure` and `ablation`
make the tables of `mavic words`.
"""
