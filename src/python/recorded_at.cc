#include "python/recorded_at.h"

#include <ATen/SequenceNumber.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/pybind.h>

#include <atomic>
#include <chrono>
#include <map>
#include <string>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "aten/tensor.h"
#include "lazy/location.h"
#include "process/fork.h"
#include "python/user_frame.h"

namespace torch_xla {
namespace {

namespace py = pybind11;
using lazy::CallPath;
using lazy::SourceLocation;

const SourceLocation* LocationIn(py::handle frame) {
  static auto* locations = new std::map<std::pair<const Function*, int>, const SourceLocation*>;
  const Function& function = FunctionOf(frame);
  const int line = LineOf(frame);
  const SourceLocation*& location = (*locations)[{&function, line}];
  if (location == nullptr) location = new SourceLocation{function.file, line, function.name};
  return location;
}

// --- The lines that called it

const CallPath* Path(const SourceLocation* location, const CallPath* caller) {
  using Key = std::pair<const SourceLocation*, const CallPath*>;
  static auto* paths = new std::map<Key, const CallPath*>;
  const CallPath*& path = (*paths)[{location, caller}];
  if (path == nullptr) path = new CallPath{location, caller};
  return path;
}

const CallPath* PathTo(py::handle users_frame) {
  constexpr size_t kMost = 64;
  std::vector<const SourceLocation*> lines;
  for (auto frame = py::reinterpret_borrow<py::object>(users_frame); frame && lines.size() < kMost;
       frame = CallerOf(frame)) {
    if (FunctionOf(frame).is_users) lines.push_back(LocationIn(frame));
  }
  const CallPath* path = nullptr;
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) path = Path(*line, path);
  return path;
}

// --- The lines of gradients: those of what they are the gradients of

// By the number that autograd gives the operation that is being recorded.
std::unordered_map<uint64_t, const CallPath*>& ForwardLines() {
  static auto* lines = new std::unordered_map<uint64_t, const CallPath*>;
  return *lines;
}

void NoteForward(const CallPath* path) {
  constexpr size_t kMost = 1 << 20;
  const uint64_t next = at::sequence_number::peek();
  if (next == 0) return;
  auto& lines = ForwardLines();
  if (lines.size() >= kMost) lines.clear();
  // A new step's operation replaces the old one's; what an operation itself records comes later and
  // stands at the same line.
  lines[next - 1] = path;
}

const CallPath* BackwardOf(const CallPath* forward) {
  static auto* all = new std::unordered_map<const SourceLocation*, const SourceLocation*>;
  const SourceLocation*& location = (*all)[forward->location];
  if (location == nullptr) {
    const SourceLocation& line = *forward->location;
    location = new SourceLocation{line.file, line.line, line.function, true};
  }
  return Path(location, forward->caller);
}

// --- Names of tensors

bool Holds(py::handle value, const lazy::Node* leaf) {
  if (!THPVariable_Check(value.ptr())) return false;
  const at::Tensor& tensor = THPVariable_Unpack(value.ptr());
  return tensor.defined() && IsXla(tensor) &&
         Impl(tensor)->xla_storage()->value().node.get() == leaf;
}

std::string NameInDictionary(py::handle values, const lazy::Node* leaf) {
  if (!PyDict_Check(values.ptr())) return "";
  for (auto [name, value] : py::reinterpret_borrow<py::dict>(values)) {
    if (Holds(value, leaf)) return Text(name);
  }
  return "";
}

bool IsArgument(py::handle code, const std::string& name) {
  auto names = py::cast<py::tuple>(code.attr("co_varnames"));
  const auto count = py::cast<size_t>(code.attr("co_argcount"));
  for (size_t i = 0; i < std::min(count, names.size()); ++i) {
    if (Text(names[i]) == name) return true;
  }
  return false;
}

std::string NameIn(py::handle frame, const lazy::Node* leaf) {
  py::object locals = frame.attr("f_locals");
  const Function& function = FunctionOf(frame);
  if (std::string name = NameInDictionary(locals, leaf); !name.empty()) {
    const char* what = IsArgument(CodeOf(frame), name) ? "argument `" : "`";
    return what + name + "` of `" + function.name + "`";
  }
  if (!PyDict_Check(locals.ptr())) return "";
  PyObject* self = PyDict_GetItemString(locals.ptr(), "self");
  if (self == nullptr || !py::hasattr(self, "_parameters")) return "";
  for (const char* kind : {"_parameters", "_buffers"}) {
    std::string name = NameInDictionary(py::handle(self).attr(kind), leaf);
    if (name.empty()) continue;
    return std::string(kind[1] == 'p' ? "parameter `" : "buffer `") + name + "` of `" +
           Text(py::type::of(self).attr("__name__")) + "`";
  }
  return "";
}

void NameLeaves(std::span<const lazy::Value> operands, const std::vector<py::object>& frames) {
  for (const lazy::Value& operand : operands) {
    const lazy::Node* leaf = operand.node.get();
    if (leaf->role() != lazy::Node::Role::kData || !lazy::LeafName(leaf).empty()) continue;
    std::string name = frames.empty() ? "" : NameIn(frames.back(), leaf);
    for (size_t i = 0; name.empty() && i + 1 < frames.size(); ++i) name = NameIn(frames[i], leaf);
    // Noted even if there is none, so that it is looked for once.
    lazy::SetLeafName(leaf, name.empty() ? "?" : name);
  }
}

std::atomic<int64_t> location_nanoseconds{0};

class LocationTimer {
 public:
  ~LocationTimer() {
    const auto taken = std::chrono::steady_clock::now() - start_;
    location_nanoseconds.fetch_add(
        std::chrono::duration_cast<std::chrono::nanoseconds>(taken).count(),
        std::memory_order_relaxed);
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

const CallPath* RecordedAt(std::span<const lazy::Value> operands) {
  const LocationTimer timer;
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return nullptr;
  const process::MayFork asking;  // who forks may have the interpreter's lock
  py::gil_scoped_acquire gil;
  try {
    if (auto gradient = torch::autograd::get_current_node()) {
      auto found = ForwardLines().find(gradient->sequence_nr());
      if (found != ForwardLines().end()) return BackwardOf(found->second);
    }
    std::vector<py::object> frames = FramesToUsers(InnermostFrame());
    NameLeaves(operands, frames);
    if (frames.empty()) return nullptr;
    const CallPath* path = PathTo(frames.back());
    NoteForward(path);
    return path;
  } catch (const py::error_already_set&) {
    return nullptr;  // while the interpreter shuts down
  }
}

const SourceLocation* UploadedAt() {
  const LocationTimer timer;
  if (!Py_IsInitialized() || PyGILState_GetThisThreadState() == nullptr) return nullptr;
  const process::MayFork asking;  // who forks may have the interpreter's lock
  py::gil_scoped_acquire gil;
  try {
    std::vector<py::object> frames = FramesToUsers(InnermostFrame());
    return frames.empty() ? nullptr : LocationIn(frames.back());
  } catch (const py::error_already_set&) {
    return nullptr;  // while the interpreter shuts down
  }
}

}  // namespace

void KeepLocations(bool keep) {
  if (keep) {
    lazy::SetLocationProvider(&RecordedAt, &UploadedAt);
  } else {
    lazy::SetLocationProvider(nullptr);
  }
}

const hlo::SourceFrame* OutermostFrames(int64_t depth) {
  using Key = std::tuple<std::string, std::string, int32_t, const hlo::SourceFrame*>;
  static auto* all = new std::map<Key, const hlo::SourceFrame*>;
  std::vector<py::object> frames;
  for (py::object frame = InnermostFrame(); frame; frame = CallerOf(frame)) frames.push_back(frame);
  const hlo::SourceFrame* innermost = nullptr;
  for (auto frame = frames.rbegin(); frame != frames.rend() && depth > 0; ++frame, --depth) {
    const py::object code = CodeOf(*frame);
    const int32_t line = LineOf(*frame);
    std::string file = Text(code.attr("co_filename")), function = Text(code.attr("co_name"));
    const hlo::SourceFrame*& known = (*all)[{file, function, line, innermost}];
    if (known == nullptr) {
      known = new hlo::SourceFrame{std::move(file), std::move(function), line, innermost};
    }
    innermost = known;
  }
  return innermost;
}

double LocationSeconds() { return static_cast<double>(location_nanoseconds.load()) * 1e-9; }

}  // namespace torch_xla
