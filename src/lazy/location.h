// Where recorded work comes from in the user's program. Kept beside the nodes, and only while
// somebody wants to know: otherwise recording pays one test of a flag.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "hlo/instruction.h"
#include "lazy/node.h"

namespace lazy {

// Made once for each place, never destroyed.
struct SourceLocation {
  std::string file;
  int line = 0;
  std::string function;      // "Net.forward"
  bool is_backward = false;  // the gradient of what stands there
};

// A line, and the user's lines that called it, the nearest first. Equal ones are one object, which
// is never destroyed.
struct CallPath {
  const SourceLocation* location;
  const CallPath* caller = nullptr;
};

// Where the program is now, for an operation with these operands; null if nobody knows.
using LocationProvider = const CallPath* (*)(std::span<const Value> operands);
// Where the program is now, for a tensor that comes from the host; null if nobody knows.
using HereProvider = const SourceLocation* (*)();
// Asked for each operation recorded and each tensor uploaded from now on; null: none.
void SetLocationProvider(LocationProvider provider, HereProvider here = nullptr);
bool HasLocationProvider();
// Null if nobody knows.
const SourceLocation* Here();

// Where the node was recorded; null if that was not kept.
const SourceLocation* LocationOf(const Node* node);
const CallPath* CallPathOf(const Node* node);
// XLA_HLO_DEBUG: whether the instructions of programs carry the lines that they come from.
bool ProgramsHaveLocations();
void SetProgramsHaveLocations(bool have);
// How the user's program calls a leaf, "argument `x` of `Net.forward`"; empty if that is not known.
std::string LeafName(const Node* leaf);
void SetLeafName(const Node* leaf, std::string name);

class SectionStack;

// A part of the user's program: what the thread that made it records while it lives is of it. It
// may end on another thread and after those around it, as a generator's does that is dropped.
class Section {
 public:
  explicit Section(std::string_view name);
  ~Section();
  Section(const Section&) = delete;

 private:
  std::shared_ptr<SectionStack> stack_;
  int64_t number_;
};

// Those that this thread is in, one within the other: "forward.1/attention.3", where numbers tell
// sections of one name apart. With a slash behind each; null: in none.
using Sections = std::shared_ptr<const std::string>;
Sections CurrentSections();
// "" if none are known.
std::string SectionsOf(const Node* node);
// Says of a node that was recorded where it belongs, instead of what was noted: `sections`, which
// stand before its operation's name as they are, and who called whom.
void SetOrigin(const Node* node, std::string sections, const hlo::SourceFrame* frame);
// Null if nobody has said so.
const hlo::SourceFrame* FrameOf(const Node* node);

// For Node.
extern std::atomic<bool> locations_are_kept;
void NoteLocation(const Node* node, std::span<const Value> operands);
void ForgetLocation(const Node* node);

}  // namespace lazy
