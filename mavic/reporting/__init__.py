"""Run records → tables and figures. Nothing is computed twice: everything comes from the records."""
