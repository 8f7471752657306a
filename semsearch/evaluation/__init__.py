"""How well a bundle answers questions whose answers are known. It needs no PyTorch."""
