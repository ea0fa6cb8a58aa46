"""The main job: predict, simulate, compare and certify, with a verdict in plain words."""
