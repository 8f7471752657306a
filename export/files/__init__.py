"""Write files so that an interrupted export loses nothing."""
