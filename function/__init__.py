"""What only the deployed function needs: the handler, Lambda's events, the start and the scripts of the image."""
