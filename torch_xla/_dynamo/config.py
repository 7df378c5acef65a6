"""Settings of compiled functions."""

# Whether to leave out the check that a compiled function's inputs need no computing first. There is none here.
skip_input_data_check: bool = False
