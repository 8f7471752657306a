"""The files of a sentence-transformer, checked before they are used."""
