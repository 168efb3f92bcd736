"""A team on robots, without JAX: what `mavic export team` wrote, run with numpy, onnxruntime and tokenizers alone.

Events come in (`say`, `observed`, `ended`, `failed`, `tick`), commands go out (`Start`, `Cancel`).

    team       RobotTeam: events to commands
    events     the commands, the answer to words, the error of a wrong event
    folder     the exported folder: read, checked by its hashes
    actors     the actors: what each agent chooses
    contract   what each kind allows, and which two instructions can hold together
    reading    a sentence to a kind, to the end of what holds, or to unsure
    log        every event and decision as JSON lines
    server     a team behind HTTP and WebSocket, for robots in other languages (needs the extra web)
    client     its client, with the standard library alone
    sockets    where a server listens
    again      the events of a log once more: the same decisions?
"""
