"""The reader: says which kind of instruction a sentence asks for, or that it is unsure.

`read.understand` answers with a trained `model.Head`. `phrase_file` reads `phrases.toml`, `spelling` corrects typing
errors, `acts` fills frames with what can be done in a world, `data` and `fit` train a head. The head of a user's
instruction file is an `own_head.OwnHead`, which `own_file` fits to its phrases. `measure` and `ablation` make the
tables of `mavic words`, and `endpoint` asks a language model instead.
"""
