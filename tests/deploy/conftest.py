"""The function as an image has it, and processes that have not imported anything yet."""

from tests.app_fixtures import image_environment, in_a_new_process, shipped
