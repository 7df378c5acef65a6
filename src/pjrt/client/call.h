// How the client calls a plugin.
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "pjrt/c_api.h"

namespace pjrt {

// An argument struct followed by zeros that are declared part of it. A plugin newer than c_api.h
// finds its newer fields there, zero, instead of refusing a struct that it thinks is too short.
template <typename Args>
class Arguments {
 public:
  Arguments() { storage_.args.struct_size = sizeof(storage_); }
  Arguments(const Arguments&) = delete;
  Args* operator->() { return &storage_.args; }
  Args* get() { return &storage_.args; }

 private:
  struct {
    Args args;
    std::byte newer_fields[256];
  } storage_{};
};

// Says that rows come first, where the default would be the device's own layout.
class RowMajorLayout {
 public:
  explicit RowMajorLayout(int64_t rank) : minor_to_major_(static_cast<size_t>(rank)) {
    std::iota(minor_to_major_.rbegin(), minor_to_major_.rend(), 0);
    layout_->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
    layout_->tiled.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
    layout_->tiled.minor_to_major = minor_to_major_.data();
    layout_->tiled.minor_to_major_size = minor_to_major_.size();
  }
  PJRT_Buffer_MemoryLayout* get() { return layout_.get(); }

 private:
  std::vector<int64_t> minor_to_major_;
  Arguments<PJRT_Buffer_MemoryLayout> layout_;
};

#define PJRT_INVOKE(plugin, name, arguments) \
  (plugin).Invoke(&PJRT_Api::PJRT_##name, "PJRT_" #name, (arguments).get())

}  // namespace pjrt
