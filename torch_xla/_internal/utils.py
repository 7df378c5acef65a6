"""Names of devices."""

import re


def parse_xla_device(device: str) -> tuple[str, int] | None:
    """The kind and the number of a device as the runtime names it, ("CPU", 0) of "CPU:0"; None of another name."""
    match = re.fullmatch(r"([A-Z]+):(\d+)", device)
    return (match[1], int(match[2])) if match else None
