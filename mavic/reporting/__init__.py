"""Run records → tables and figures. Each number comes from the records alone, so the same records give the same bytes.

report      all tables and figures of a folder of records: `report(folder)`
rows        records → rows, with every metric estimated over seeds (`stats`)
tables      rows → tables of texts, with `captions` and numbers as texts (`formats`)
writers     tables → JSON, Markdown, LaTeX and CSV
terminal    tables on a terminal
figures     rows → figures, from the pieces in `drawing`
styles      labels, colours and the order of methods
backbones   the table that compares backbones
studies     the pages of the paper's studies
extras      imports of packages that come with the extra `report`
"""
