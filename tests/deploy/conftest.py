"""The function as an image has it, and processes that have not imported anything yet."""

from tests.function.conftest import image_environment as image_environment
from tests.function.conftest import in_a_new_process as in_a_new_process
from tests.function.conftest import shipped as shipped
