"""The default model of semsearch, converted: a folder of files, with no code."""
