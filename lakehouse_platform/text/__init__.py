"""Pure text: CSV inference, JSON rows and schema text to and from Arrow."""
