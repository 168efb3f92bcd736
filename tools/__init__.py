"""What only maintainers run: blocks of pages, cited numbers, fitting the reader. Not part of the wheel."""
