"""huggingface_hub's InferenceClient, which asks POST / when it is given a server's address."""

import numpy as np
import pytest
from huggingface_hub import InferenceClient
from huggingface_hub.errors import HfHubHTTPError

TEXTS = ["the goose won", "the ferry", "an old sailor painted the kitchen door"]


@pytest.fixture(params=["model", "base_url"])
def client(address: str, request: pytest.FixtureRequest) -> InferenceClient:
    return InferenceClient(**{request.param: address}, token="none")


def test_feature_extraction_embeds_one_text_or_several(client: InferenceClient) -> None:
    several = client.feature_extraction(TEXTS, truncate=True, normalize=True, prompt_name="query")
    assert (several.shape, several.dtype) == ((3, 48), np.float32)
    np.testing.assert_allclose(np.linalg.norm(several, axis=1), 1, atol=1e-6)
    np.testing.assert_array_equal(client.feature_extraction(TEXTS[1]), several[1:2])
    assert client.feature_extraction(TEXTS, dimensions=5).shape == (3, 5)


def test_sentence_similarity_is_the_cosine(client: InferenceClient) -> None:
    source, *others = client.feature_extraction(TEXTS)
    found = client.sentence_similarity(TEXTS[0], other_sentences=TEXTS[1:])
    np.testing.assert_allclose(found, [other @ source for other in others], rtol=1e-6)


def test_a_refusal_is_shown(client: InferenceClient) -> None:
    with pytest.raises(HfHubHTTPError, match="422"):
        client.feature_extraction("goose " * 30, truncate=False)
