"""The commands of `semsearch`, each a module with one typed function, read by cyclopts."""
