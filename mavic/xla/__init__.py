"""How programs are compiled for one type of device. This changes the speed and not the numbers.

- `scalars`: on a GPU, the ticks are computed number by number; MAVIC_SCALARS=0 switches it off.
"""
