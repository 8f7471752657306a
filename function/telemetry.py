"""The one logger: JSON lines to standard output, which Lambda keeps in CloudWatch."""

from aws_lambda_powertools.logging import Logger

SERVICE = "semantic-search"

# milliseconds and location of the call are left to CloudWatch and to the message: formatting them costs more than the rest
logger = Logger(service=SERVICE, location=None, log_uncaught_exceptions=False)
