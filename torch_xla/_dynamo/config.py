"""Settings of compiled functions."""

# Whether a compiled function's inputs are data already, from its second call on. Recorded work is welcome otherwise: it runs
# with the function.
skip_input_data_check: bool = False
