// The buffers that the program holds, for reports of memory.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hlo/error.h"
#include "lazy/location.h"
#include "lazy/operation.h"

namespace lazy {

class Data;
class Device;

struct LiveTensors {
  const Device* device;
  SharedShape shape;
  std::string made_by;             // "aten::mm", or "" for what came from the host
  const SourceLocation* location;  // null if that was not kept
  std::string sections;            // of the program that made it, with a slash behind each
  int64_t count = 0;               // of equal ones
  int64_t bytes = 0;               // of all of them
};
// Those with the same shape that were made at the same place by the same operation are one entry;
// the largest sum comes first.
std::vector<LiveTensors> ListLiveTensors();
// "out of memory: …" with the largest of them.
std::string DescribeLiveTensors(size_t most = 10);

// Calls `f`, whose error of too little memory (kResourceExhausted) then says who holds it.
template <typename F>
auto ExplainingMemory(F&& f) {
  try {
    return f();
  } catch (const hlo::Error& error) {
    if (error.code() != hlo::ErrorCode::kResourceExhausted) throw;
    throw hlo::Error(error.code(), std::string(error.what()) + "\n" + DescribeLiveTensors());
  }
}

// A Data's place among those that hold a buffer, and who made it. Under the list's lock.
struct LiveEntry {
  const Data* previous = nullptr;
  const Data* next = nullptr;
  bool is_listed = false;
  const OperationKind* kind = nullptr;
  const SourceLocation* location = nullptr;
  Sections sections;
};

// For Data and those who make it.
void AddLiveData(const Data* data);
// Again of one that is not there: does nothing.
void RemoveLiveData(const Data* data);
void NoteMaker(const Data* data, const OperationKind* kind, const SourceLocation* location,
               Sections sections = nullptr);
// That it comes from the host, at this thread's line, where lines are kept.
void NoteUpload(const Data* data);

}  // namespace lazy
