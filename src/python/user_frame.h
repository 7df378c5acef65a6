// Which of the interpreter's frames are the user's. All needs the interpreter's lock.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <vector>

namespace torch_xla {

// A function of Python.
struct Function {
  bool is_users = false;  // in neither torch nor torch_xla
  std::string file;
  std::string name;  // qualified, from Python 3.11 on
};

// str(object).
std::string Text(pybind11::handle object);

pybind11::object CodeOf(pybind11::handle frame);

// What is known of the frame's function; it stays where it is, and is the same for functions of one
// name in one file. Code objects that were asked about are kept, so that no other gets their
// address, until there are very many.
const Function& FunctionOf(pybind11::handle frame);

int LineOf(pybind11::handle frame);

// This thread's innermost frame; null if it runs no Python.
pybind11::object InnermostFrame();

// The frame that called it, or null.
pybind11::object CallerOf(pybind11::handle frame);

// From `innermost` outwards to the first of the user's; empty if none is.
std::vector<pybind11::object> FramesToUsers(pybind11::object innermost);

}  // namespace torch_xla
