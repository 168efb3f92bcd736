"""From a sentence to the kind it asks for, or unsure."""
