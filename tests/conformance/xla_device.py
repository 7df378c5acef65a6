"""The device that torch's own device-generic tests take: TORCH_TEST_DEVICES names this file."""

# torch's loader runs this file with the names of torch.testing._internal.common_device_type.
import torch_xla  # noqa: F401  registers the device


class XLATestBase(DeviceTypeTestBase):  # noqa: F821
    """Tests on `xla`, at the tolerances that torch has for the CPU."""

    device_type = "xla"

    @classmethod
    def get_primary_device(cls) -> str:
        return "xla:0"


TEST_CLASS = XLATestBase
