"""The types of inputs, parameters and states, and checks of their values."""
