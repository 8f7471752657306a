"""Build steps of the image. None of them runs in Lambda."""
