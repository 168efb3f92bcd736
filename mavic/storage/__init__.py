"""Files: atomic writes, hashes, folder locks, the shapes of JSON, arrays, pytrees as named arrays.

The lowest room. It does not know experiments, so every other room may use it.

    files       write_text, write_bytes, read_bytes, digest, locked
    json_shape  parse, check
    arrays      read_npz
    trees       flatten, unflatten
"""
