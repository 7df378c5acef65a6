#include "hlo/module_identity.h"

namespace hlo {

const char* ModuleIdentity() { return HLO_MODULE_IDENTITY; }

}  // namespace hlo
