"""What goes wrong while publishing."""

from function.engine.bundle import BundleError


class PublishError(BundleError):
    """What cannot be published or switched: the message says where, what was found and what to do."""
