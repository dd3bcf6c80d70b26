"""A search for inputs that break a compiler or a decoder, over many rounds."""
