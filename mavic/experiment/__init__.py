"""What is trained, as data: axes, configurations, methods, tasks and the records they leave.

This room does not train. Rooms above read its tables.

    axes          AXES: one row for everything that an experiment can vary; conditions as text
    config        ExperimentConfig: one value for each axis, checked and named
    methods       METHODS; the numbers of a preset as arrays
    task          Task: environment, instruction file, phrases
    environments  a configuration's environment, with instructions and their schedule
    talk          who and what can be spoken of in a world, and what can hold together
    check         finds mistakes in an instruction file before anything is trained
    records       JSON lines: the only source of tables
"""
