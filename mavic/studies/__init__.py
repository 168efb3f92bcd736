"""The studies of `mavic reproduce`, the jobs they are made of, and speed.

studies    STUDIES: one row per study
trainings  a training of a study: one `mavic train` command, and what it costs
jobs       a command with a folder, attempts and a mark when it is done
engines    ENGINES: where jobs run: this machine, Ray, Slurm
benchmark  how fast a machine trains
"""
