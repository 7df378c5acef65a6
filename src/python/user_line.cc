#include "python/user_line.h"

#include <pybind11/pybind11.h>

#include <string>
#include <string_view>
#include <vector>

namespace torch_xla {
namespace {

namespace py = pybind11;

// The folders whose lines are not the user's.
const std::vector<std::string>& Libraries() {
  static const std::vector<std::string>* folders = nullptr;  // under the interpreter's lock
  if (folders == nullptr) {
    auto* found = new std::vector<std::string>;
    for (const char* name : {"torch", "torch_xla"}) {
      for (py::handle folder : py::module_::import(name).attr("__path__")) {
        found->push_back(py::cast<std::string>(folder) + "/");
      }
    }
    folders = found;
  }
  return *folders;
}

bool IsUsers(std::string_view file) {
  if (file.starts_with("<frozen")) return false;
  for (const std::string& folder : Libraries()) {
    if (file.starts_with(folder)) return false;
  }
  return true;
}

// The innermost of the user's frames from `innermost` on, a new reference or null.
lazy::SourceLine FirstOfUser(PyFrameObject* innermost) {
  auto frame = py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(innermost));
  while (frame) {
    auto* current = reinterpret_cast<PyFrameObject*>(frame.ptr());
    auto code =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetCode(current)));
    py::object file = code.attr("co_filename");
    Py_ssize_t size = 0;
    const char* text = PyUnicode_AsUTF8AndSize(file.ptr(), &size);
    if (text == nullptr) {
      PyErr_Clear();
    } else if (const std::string_view name(text, size); IsUsers(name)) {
      return {std::string(name), PyFrame_GetLineNumber(current)};
    }
    frame =
        py::reinterpret_steal<py::object>(reinterpret_cast<PyObject*>(PyFrame_GetBack(current)));
  }
  return {};
}

PyFrameObject* MainThreadsFrame() {
  py::object main = py::module_::import("threading").attr("main_thread")().attr("ident");
  py::dict frames = py::module_::import("sys").attr("_current_frames")();
  if (!frames.contains(main)) return nullptr;
  return reinterpret_cast<PyFrameObject*>(py::object(frames[main]).release().ptr());
}

}  // namespace

lazy::SourceLine UserLine() {
  try {
    lazy::SourceLine line = FirstOfUser(PyThreadState_GetFrame(PyThreadState_Get()));
    return line.file.empty() ? FirstOfUser(MainThreadsFrame()) : line;
  } catch (const py::error_already_set&) {
    return {};  // while the interpreter shuts down
  }
}

}  // namespace torch_xla
