"""What a network with several outputs learns: stages, verdict, page.

The stages are those of one output where they exist for several: directions and alignment, the first
jumps of the limit process, the best network, a simulation, the end. What is told is which classes
each direction tells apart, in which order pairs of classes separate, and what is confused when.
"""
