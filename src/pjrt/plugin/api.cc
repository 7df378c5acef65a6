#include "pjrt/boundary/table.h"

namespace pjrt::boundary {

const PJRT_Api& Api() {
  static const Table table = MakeTable();
  return table.api;
}

}  // namespace pjrt::boundary
