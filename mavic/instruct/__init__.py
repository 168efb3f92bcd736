"""Instructions: the file that describes them, when they come and go, and what they pay."""
