"""The export step of the deployment: a model and texts become a bundle."""
