"""The verdict of an explanation, sentence by sentence."""
