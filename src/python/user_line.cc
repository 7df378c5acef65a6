#include "python/user_line.h"

#include "python/user_frame.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

lazy::SourceLine FirstOfUser(py::object innermost) {
  const std::vector<py::object> frames = FramesToUsers(std::move(innermost));
  if (frames.empty()) return {};
  return {FunctionOf(frames.back()).file, LineOf(frames.back())};
}

py::object MainThreadsFrame() {
  py::object main = py::module_::import("threading").attr("main_thread")().attr("ident");
  py::dict frames = py::module_::import("sys").attr("_current_frames")();
  return frames.contains(main) ? py::object(frames[main]) : py::object();
}

}  // namespace

lazy::SourceLine UserLine() {
  try {
    lazy::SourceLine line = FirstOfUser(InnermostFrame());
    return line.file.empty() ? FirstOfUser(MainThreadsFrame()) : line;
  } catch (const py::error_already_set&) {
    return {};  // while the interpreter shuts down
  }
}

}  // namespace torch_xla
