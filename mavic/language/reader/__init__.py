"""The reader: says which kind of instruction a sentence asks for, or that it is unsure.

| module | purpose |
|---|---|
| `phrase_file` | reads a world's `phrases.toml` |
| `spelling` | corrects typing errors, and adds them to training sentences |
| `data` | makes the training set |
| `model` | the network: texts and encoder states to probabilities |
| `fit` | trains and calibrates the network |
| `read` | answers: a sentence to an `Understanding` |
| `measure` | how often the answers are right |
| `ablation` | what each encoder's vectors can tell apart |
| `ship` | makes the files in `mavic/language/data` |
"""
