#include "lazy/location.h"

#include <cstdlib>
#include <mutex>
#include <unordered_map>

#include "process/fork.h"

namespace lazy {
namespace {

std::atomic<LocationProvider> provider{nullptr};
std::atomic<HereProvider> here_provider{nullptr};

struct Note {
  const CallPath* path = nullptr;
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

std::atomic<bool>& Programs() {
  static std::atomic<bool> have{[] {
    const char* value = std::getenv("XLA_HLO_DEBUG");
    const std::string text = value != nullptr ? value : "";
    return text == "1" || text == "true";
  }()};
  return have;
}

}  // namespace

std::atomic<bool> locations_are_kept{false};

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
  const CallPath* path = ask != nullptr ? ask(operands) : nullptr;
  if (path == nullptr) return;
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  notes.of_node[node].path = path;
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

const CallPath* CallPathOf(const Node* node) {
  if (!locations_are_kept.load(std::memory_order_relaxed)) return nullptr;
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  auto found = notes.of_node.find(node);
  return found != notes.of_node.end() ? found->second.path : nullptr;
}

std::string LeafName(const Node* leaf) {
  if (!locations_are_kept.load(std::memory_order_relaxed)) return "";
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  auto found = notes.of_node.find(leaf);
  return found != notes.of_node.end() ? found->second.leaf_name : "";
}

void SetLeafName(const Node* leaf, std::string name) {
  Notes& notes = Notes::Get();
  std::lock_guard lock(notes.mutex);
  notes.of_node[leaf].leaf_name = std::move(name);
}

}  // namespace lazy
