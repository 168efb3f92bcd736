"""Runs to weights: many trainings as one compiled program, and what surrounds it on the host.

This room decides what is computed together. `mavic.session` calls it for people.

    runs        Run: all numbers of one training, stacked over seeds and configurations
    train       play a batch, update, repeat: the compiled program
    groups      Group: the configurations that train in one program
    population  several members of each seed, of which the worse half is dropped
    trained     Trained: a group after training; its teams and records
    checkpoint  save and resume a training
    divergence  runs whose numbers are no longer finite
    devices     runs side by side and over several devices
    memory      the memory that a training needs, as the compiler says
"""
