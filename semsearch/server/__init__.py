"""The app as a server: one process or a few that answer many requests at once. Lambda imports none of this."""
