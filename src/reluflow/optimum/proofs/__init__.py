"""What turns numerical results into proofs: trees of signs, boxes around exact points, rounding."""
