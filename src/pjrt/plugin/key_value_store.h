// The store behind the key-value callbacks of Client_Create.
#pragma once

#include "cpu/collective/key_value_store.h"
#include "pjrt/c_api.h"

namespace pjrt::plugin {

// Null functions if there are no callbacks. The store may be used as long as the client lives.
cpu::KeyValueStore StoreFrom(const PJRT_Client_Create_Args& args);

}  // namespace pjrt::plugin
