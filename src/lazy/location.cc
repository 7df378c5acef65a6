#include "lazy/location.h"

#include <cstdlib>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "process/fork.h"

namespace lazy {

std::atomic<bool> locations_are_kept{false};

namespace {

std::atomic<LocationProvider> provider{nullptr};
std::atomic<HereProvider> here_provider{nullptr};

struct Note {
  const CallPath* path = nullptr;
  Sections sections;
  const hlo::SourceFrame* frame = nullptr;
  std::string leaf_name;
};

struct Notes {
  process::Mutex mutex;
  std::unordered_map<const Node*, Note> of_node;
  static Notes& Get() {
    static Notes* notes = new Notes;
    return *notes;
  }
};

struct SectionStack {
  std::vector<Sections> open;  // each with those around it
  std::unordered_map<std::string, int64_t> entered;
  static SectionStack& Get() {
    thread_local SectionStack stack;
    return stack;
  }
};

// What was noted of a node, or nothing.
Note NoteOf(const Node* node) {
  if (!locations_are_kept.load(std::memory_order_relaxed)) return {};
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  auto found = notes.of_node.find(node);
  return found != notes.of_node.end() ? found->second : Note();
}

std::atomic<bool>& Programs() {
  static std::atomic<bool> have{[] {
    const char* value = std::getenv("XLA_HLO_DEBUG");
    const std::string text = value != nullptr ? value : "";
    return text == "1" || text == "true";
  }()};
  return have;
}

}  // namespace

void SetLocationProvider(LocationProvider new_provider, HereProvider here) {
  provider = new_provider;
  here_provider = here;
  // Never taken back: what was noted is forgotten with its node.
  if (new_provider != nullptr) locations_are_kept = true;
}

const SourceLocation* Here() {
  HereProvider ask = here_provider.load(std::memory_order_relaxed);
  return ask != nullptr ? ask() : nullptr;
}

bool HasLocationProvider() { return provider.load(std::memory_order_relaxed) != nullptr; }

bool ProgramsHaveLocations() { return Programs().load(std::memory_order_relaxed); }
void SetProgramsHaveLocations(bool have) { Programs() = have; }

void NoteLocation(const Node* node, std::span<const Value> operands) {
  LocationProvider ask = provider.load(std::memory_order_relaxed);
  if (ask == nullptr) return;
  const CallPath* path = ask(operands);
  Sections sections = CurrentSections();
  if (path == nullptr && sections == nullptr) return;
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  Note& note = notes.of_node[node];
  note.path = path;
  note.sections = std::move(sections);
}

void ForgetLocation(const Node* node) {
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  notes.of_node.erase(node);
}

const SourceLocation* LocationOf(const Node* node) {
  const CallPath* path = CallPathOf(node);
  return path != nullptr ? path->location : nullptr;
}

const CallPath* CallPathOf(const Node* node) { return NoteOf(node).path; }

std::string LeafName(const Node* leaf) { return NoteOf(leaf).leaf_name; }

void SetLeafName(const Node* leaf, std::string name) {
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  notes.of_node[leaf].leaf_name = std::move(name);
}

void EnterSection(std::string_view name) {
  SectionStack& stack = SectionStack::Get();
  std::string sections = stack.open.empty() ? "" : *stack.open.back();
  sections += name;
  sections += "." + std::to_string(++stack.entered[sections]) + "/";
  stack.open.push_back(std::make_shared<const std::string>(std::move(sections)));
}

void LeaveSection() {
  SectionStack& stack = SectionStack::Get();
  stack.open.pop_back();
  if (stack.open.empty()) stack.entered.clear();
}

Sections CurrentSections() {
  const SectionStack& stack = SectionStack::Get();
  return stack.open.empty() ? nullptr : stack.open.back();
}

std::string SectionsOf(const Node* node) {
  const Sections sections = NoteOf(node).sections;
  return sections != nullptr ? *sections : "";
}

void SetOrigin(const Node* node, std::string sections, const hlo::SourceFrame* frame) {
  locations_are_kept = true;
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  Note& note = notes.of_node[node];
  note.sections = std::make_shared<const std::string>(std::move(sections));
  note.frame = frame;
}

const hlo::SourceFrame* FrameOf(const Node* node) { return NoteOf(node).frame; }

}  // namespace lazy
