"""Instructions: what they ask for, when they come and go, and what they pay.

- `spec`: the instruction file (kinds and phrases).
- `reward`: a file's kinds as arrays, which macros comply, and the pay.
- `schedule`: the clock that gives and ends instructions.
- `pairs`: two instructions that hold together.
"""
