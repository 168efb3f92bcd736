"""What `mavic.train` and `mavic train` do: train, evaluate, write; with progress, logs and Ctrl-C.

session   train and evaluate_policy, from a few names; configs_of
runner    train_group: one group on the host, point by point
loggers   callbacks at every point: TensorBoard, Weights & Biases
stopping  Ctrl-C and SIGTERM
"""
