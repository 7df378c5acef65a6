#include "hlo/text_writer.h"

#include "hlo/error.h"

namespace hlo {
std::string WriteStablehloText(const Module& module, const TextOptions& options) {
  throw Error(ErrorCode::kUnimplemented, "StableHLO text is not written yet");
}
}  // namespace hlo
