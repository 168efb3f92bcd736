"""Instructions: the file a person writes, when they come and go, what they pay."""
