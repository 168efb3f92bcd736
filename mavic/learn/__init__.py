"""Learning: from ticks to parameters. The room imports no environments, instructions or rollouts.

Rows of `BACKBONES`, `NETWORKS`, `CELLS`, `VIEWS` and `CORRECTIONS` extend it.

    transitions  ticks → macro transitions
    batches      the rows of actors and critics, and which team rows an actor row spans
    values       V(h, c), V(h′, c) and V(h′, c′) of rows
    returns      the targets: none, shift, cut
    losses       actor loss and critic loss
    update       TrainState; one critic's step and one actor's step
    backbones    which actors and critics a team has; `learn`, one update for all of them
    acac         the critic of ACAC
    views        what a network sees: an agent's own macros, or the team as one agent
    networks     what a network is; shared, protected, residual
    cells        a network from any recurrent cell
    gru          the network that training uses
    kind_heads   an output layer for each kind
    popart       the scale of values
    bptt         gradients through time, in blocks
    act          `decide`: rollouts, teams and the playground act by it
"""
