"""How close the 8-bit model is to float32, how it ranks, and how fast it embeds."""
