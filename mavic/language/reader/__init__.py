"""The reader: says which kind of instruction a sentence asks for, or that it is unsure.

`read.understand` answers with a trained `model.Head`. `phrase_file` reads `phrases.toml`, `spelling` corrects typing
errors, `data` and `fit` train a head. `measure` and `ablation` make the tables of `mavic words`.
"""
