"""Texts become a bundle."""
