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

// The sections that a thread is in. Others may take some out.
class SectionStack {
 public:
  static const std::shared_ptr<SectionStack>& OfThread() {
    thread_local auto stack = std::make_shared<SectionStack>();
    return stack;
  }

  int64_t Enter(std::string_view name) {
    std::lock_guard lock(mutex_);
    std::string sections;
    int64_t count = 1;
    if (!open_.empty()) {
      Open& around = open_.back();
      sections = *around.sections;
      count = ++around.entered[std::string(name)];
    }
    sections += name;
    sections += "." + std::to_string(count) + "/";
    open_.push_back({++last_, std::make_shared<const std::string>(std::move(sections)), {}});
    return last_;
  }
  void Leave(int64_t number) {
    std::lock_guard lock(mutex_);
    std::erase_if(open_, [&](const Open& open) { return open.number == number; });
  }
  Sections Current() {
    std::lock_guard lock(mutex_);
    return open_.empty() ? nullptr : open_.back().sections;
  }

 private:
  struct Open {
    int64_t number;
    Sections sections;  // with those around it
    // How often it had a section of each name: with it they are forgotten.
    std::unordered_map<std::string, int64_t> entered;
  };
  process::Mutex mutex_;
  std::vector<Open> open_;
  int64_t last_ = 0;
};

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

Section::Section(std::string_view name)
    : stack_(SectionStack::OfThread()), number_(stack_->Enter(name)) {}
Section::~Section() { stack_->Leave(number_); }

Sections CurrentSections() { return SectionStack::OfThread()->Current(); }

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
