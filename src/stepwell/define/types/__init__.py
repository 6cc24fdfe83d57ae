"""The types of inputs, parameters and states, and values held against them."""
