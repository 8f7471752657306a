"""The file formats of a corpus."""
