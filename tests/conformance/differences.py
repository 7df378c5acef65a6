"""Where the device cannot do what eager does on the CPU, each with its reason: nothing else may fail."""

# The contents are whatever the memory held.
UNDEFINED_CONTENTS = {
    "empty",
    "empty_like",
    "empty_permuted",
    "empty_strided",
    "new_empty",
    "new_empty_strided",
}

# Tests that cannot pass, by entry; "*" is every test of the entry.
IMPOSSIBLE: dict[str, str] = {}
