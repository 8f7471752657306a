"""Make tests/data/tiny-bert: a real BERT of 200 KB in sentence-transformers' folder layout.

    python tests/data/make_tiny_bert.py

The files of settings are written by hand; this script writes the tokenizer and the weights.
It is untrained, so its embeddings carry no meaning, but it is read, exported and quantized like a trained model. Its
weights are larger than those of a freshly initialized BERT, which embeds every text nearly the same. All arithmetic
is exact (uniform numbers, powers of two), so that every machine makes the same bytes.
"""

import shutil
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from tokenizers.decoders import WordPiece as WordPieceDecoder
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import TemplateProcessing

FOLDER = Path(__file__).parent / "tiny-bert"
SEED = 7
DIM, LAYERS, HEADS, INTERMEDIATE, POSITIONS, MAX_TOKENS = 32, 2, 4, 64, 64, 32
SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

SENTENCES = """\
The harbour was quiet this morning, because the fishing boats had already left before dawn.
A black cat slept on the warm stones in front of the bakery while the children walked to school.
Our new neighbours moved in last week and brought a piano, two dogs and a surprising number of books.
She opened the window to let in some fresh air and heard the church bells ringing across the valley.
The council has decided to close the old bridge for repairs until the beginning of next summer.
Scientists found water under the ice of a distant moon, according to a report published on Tuesday.
The minister said that taxes would not rise again, but nobody in the room seemed to believe him.
Two hundred people were rescued from their homes after the river flooded the lower part of the town.
The striker scored three goals in the second half and the crowd sang his name until midnight.
Fry the onions slowly in butter, add the garlic and the tomatoes, then let the sauce simmer for an hour.
My grandfather repaired watches and radios in a small workshop behind the railway station.
Heavy snow is expected in the mountains tonight; drivers should stay at home if they can.
The company sold fewer cars than expected, and its shares fell by almost seven percent on Friday.
A young doctor from the village developed a cheap test that finds the disease within minutes.
Return the number of items in a list, or raise an error when the argument has no length.
Open the file, read every line, remove the spaces at both ends and write the result to another file.
The function takes a string and returns a dictionary with the count of each character.
Close the connection when the server does not answer within the given number of seconds.
The orchestra will perform the ninth symphony on Saturday evening in the great hall of the university.
He lost the keys to his bicycle and had to walk all the way back through the rain.
Bees visit millions of flowers to make a single jar of honey, which explains why it is never cheap.
The train to the coast leaves from platform four at half past nine and stops at every village.
They painted the kitchen yellow, planted cherry trees in the garden and built a shed for the tools.
The museum shows letters, maps and photographs of the first expedition to the southern continent.
Police arrested three men who had tried to steal paintings from a private collection.
The teacher explained why the sky is blue and why the sunset turns it orange and red.
Nobody knows who wrote the poem, but every sailor on the island can recite it by heart.
If you want to learn a language, listen to the radio, read the news and speak with your friends.
The jury gave the first prize to a film about a lighthouse keeper and his daughter.
An earthquake shook the capital early on Sunday, but no buildings were damaged and nobody was hurt.
The price of coffee has doubled since January, and farmers blame the long drought.
Prime Minister meets farmers as protests against the new water law spread to five more cities.
Ten easy ways to keep your kitchen clean, your plants alive and your guests happy.
Cricket: the visitors win the final test by an innings after rain delays play for two days.
The library is open from Monday to Friday between 8 and 20 o'clock, and on Saturday until 14:30.
You should never feed bread to ducks, she told the boy, who had already thrown most of it into the pond.
The spacecraft entered orbit after a journey of eleven months and sent back its first pictures.
Search the text for a pattern and replace each match with the value that the caller provides.
Convert the date to universal time, format it as a string and print it together with the temperature.
Workers at the airport went on strike, leaving thousands of passengers without their luggage.
"""


def make(folder: Path) -> None:
    """Write all files of the model into a folder."""
    if folder != FOLDER:
        ignored = shutil.ignore_patterns("tokenizer.json", "*.safetensors")
        shutil.copytree(FOLDER, folder, ignore=ignored, dirs_exist_ok=True)
    tokenizer = make_tokenizer()
    tokenizer.save(str(folder / "tokenizer.json"))
    words = tokenizer.get_vocab_size()
    save_file(make_weights(words), folder / "model.safetensors", metadata={"format": "pt"})


def make_tokenizer() -> Tokenizer:
    """Return a lower-casing WordPiece tokenizer of the sentences above. Like many, it pads and truncates.

    The vocabulary is counted here, because the trainer of `tokenizers` numbers it differently each time.
    """
    normalizer, pre_tokenizer = BertNormalizer(lowercase=True), BertPreTokenizer()
    words = {word for word, _ in pre_tokenizer.pre_tokenize_str(normalizer.normalize_str(SENTENCES))}
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]  # so that English is never [UNK]
    endings = Counter(f"##{word[-length:]}" for word in words for length in (2, 3) if len(word) > length)
    pieces = [f"##{letter}" for letter in letters if letter.isalnum()]
    pieces += sorted(ending for ending, count in endings.items() if count > 2)
    pieces += sorted(words - set(letters))
    vocabulary = {piece: number for number, piece in enumerate([*SPECIAL_TOKENS, *letters, *pieces])}

    tokenizer = Tokenizer(WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = WordPieceDecoder()
    tokenizer.add_special_tokens(SPECIAL_TOKENS)
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.enable_truncation(MAX_TOKENS)
    tokenizer.enable_padding(length=MAX_TOKENS)
    return tokenizer


def make_weights(words: int) -> dict[str, NDArray[Any]]:
    """Return the tensors of transformers' BertModel by name, float32."""
    random = np.random.default_rng(SEED)

    def uniform(*shape: int, largest: float) -> NDArray[Any]:
        return (random.random(shape, np.float32) - np.float32(0.5)) * np.float32(2 * largest)

    tensors = {
        "embeddings.word_embeddings.weight": uniform(words, DIM, largest=1.0),
        "embeddings.position_embeddings.weight": uniform(POSITIONS, DIM, largest=0.125),
        "embeddings.token_type_embeddings.weight": uniform(2, DIM, largest=0.125),
        "pooler.dense.weight": uniform(DIM, DIM, largest=0.25),
        "pooler.dense.bias": uniform(DIM, largest=0.125),
    }
    norms = ["embeddings.LayerNorm"]
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}"
        products = {  # outputs, inputs, largest weight: sharp attention, and token vectors that keep their word
            "attention.self.query": (DIM, DIM, 1.0),
            "attention.self.key": (DIM, DIM, 1.0),
            "attention.self.value": (DIM, DIM, 0.5),
            "attention.output.dense": (DIM, DIM, 0.25),
            "intermediate.dense": (INTERMEDIATE, DIM, 0.5),
            "output.dense": (DIM, INTERMEDIATE, 0.25),
        }
        for name, (outputs, inputs, largest) in products.items():
            tensors[f"{prefix}.{name}.weight"] = uniform(outputs, inputs, largest=largest)
            tensors[f"{prefix}.{name}.bias"] = uniform(outputs, largest=0.125)
        norms += [f"{prefix}.attention.output.LayerNorm", f"{prefix}.output.LayerNorm"]
    for name in norms:
        tensors[f"{name}.weight"] = np.float32(1) + uniform(DIM, largest=0.25)
        tensors[f"{name}.bias"] = uniform(DIM, largest=0.125)
    return tensors


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER)
