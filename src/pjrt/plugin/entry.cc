// The plugin's one exported symbol.
#include "pjrt/boundary/functions.h"

extern "C" __attribute__((visibility("default"))) const PJRT_Api* GetPjrtApi() {
  return &pjrt::boundary::Api();
}
