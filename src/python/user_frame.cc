#include "python/user_frame.h"

#include <map>
#include <unordered_map>
#include <utility>

namespace torch_xla {
namespace {

namespace py = pybind11;

PyFrameObject* Frame(py::handle frame) { return reinterpret_cast<PyFrameObject*>(frame.ptr()); }

// A new reference to a frame or a code, or null.
template <typename T>
py::object Owned(T* object) {
  return py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(object));
}

// The beginnings of the file names that are not the user's.
const std::vector<std::string>& Libraries() {
  static const std::vector<std::string>* libraries = nullptr;  // under the interpreter's lock
  if (libraries == nullptr) {
    auto* found = new std::vector<std::string>{"<frozen", "<eval_with_key>"};
    for (const char* name : {"torch", "torch_xla"}) {
      for (py::handle folder : py::module_::import(name).attr("__path__")) {
        found->push_back(Text(folder) + "/");
      }
    }
    libraries = found;
  }
  return *libraries;
}

Function Describe(py::handle code) {
  Function function;
  function.file = Text(code.attr("co_filename"));
  function.name = Text(code.attr(py::hasattr(code, "co_qualname") ? "co_qualname" : "co_name"));
  function.is_users = true;
  for (const std::string& library : Libraries()) {
    if (function.file.starts_with(library)) function.is_users = false;
  }
  return function;
}

}  // namespace

std::string Text(py::handle object) { return py::cast<std::string>(py::str(object)); }

py::object CodeOf(py::handle frame) { return Owned(PyFrame_GetCode(Frame(frame))); }

const Function& FunctionOf(py::handle frame) {
  // A program may make code for ever; what it calls the functions repeats.
  constexpr size_t kMostCodes = 1 << 16;
  using Codes = std::unordered_map<PyObject*, std::pair<py::object, const Function*>>;
  static auto* codes = new Codes;
  static auto* functions = new std::map<std::pair<std::string, std::string>, Function>;
  py::object code = CodeOf(frame);
  auto found = codes->find(code.ptr());
  if (found != codes->end()) return *found->second.second;
  Function described = Describe(code);
  std::pair name(described.file, described.name);
  const Function& function =
      functions->emplace(std::move(name), std::move(described)).first->second;
  if (codes->size() >= kMostCodes) {
    const Codes forgotten = std::exchange(*codes, {});
  }
  PyObject* address = code.ptr();
  codes->emplace(address, std::pair(std::move(code), &function));
  return function;
}

int LineOf(py::handle frame) { return PyFrame_GetLineNumber(Frame(frame)); }

py::object InnermostFrame() { return Owned(PyThreadState_GetFrame(PyThreadState_Get())); }

py::object CallerOf(py::handle frame) { return Owned(PyFrame_GetBack(Frame(frame))); }

std::vector<py::object> FramesToUsers(py::object innermost) {
  std::vector<py::object> frames;
  for (py::object frame = std::move(innermost); frame; frame = CallerOf(frame)) {
    frames.push_back(frame);
    if (FunctionOf(frame).is_users) return frames;
  }
  return {};
}

}  // namespace torch_xla
