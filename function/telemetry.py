"""The one logger: JSON lines to standard output, which Lambda keeps in CloudWatch."""

from aws_lambda_powertools.logging import Logger

SERVICE = "semantic-search"

logger = Logger(service=SERVICE, location=None)  # no location: it is always the same line
