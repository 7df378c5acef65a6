// The parts of the extension module.
#pragma once

#include <pybind11/pybind11.h>

#include <string>
#include <utility>

#include "lazy/device.h"

namespace torch_xla {

void BindRuntime(pybind11::module_& m);         // plugins, devices, steps, random numbers
void BindTensors(pybind11::module_& m);         // what a tensor is made of
void BindBuffers(pybind11::module_& m);         // the memory behind tensors
void BindDlpack(pybind11::module_& m);          // memory that is shared with other libraries
void BindMetrics(pybind11::module_& m);         // counters and reports
void BindFallback(pybind11::module_& m);        // decompositions, operators run on the CPU
void BindDebugging(pybind11::module_& m);       // what debug reports are made of
void BindAheadOfTime(pybind11::module_& m);     // compiling for devices that are not here
void BindControlFlow(pybind11::module_& m);     // loops and branches
void BindCapturedGraphs(pybind11::module_& m);  // graphs that dynamo hands over
void BindProfiler(pybind11::module_& m);        // profiles, and the user's own spans
void BindXlaBuilder(pybind11::module_& m);      // programs built from Python
void BindExport(pybind11::module_& m);          // programs for others
void BindWorld(pybind11::module_& m);           // the other processes, and operations between them

// The device that "xla:1" names; the current one for an empty string. Starts the runtime, so that
// it is called without the interpreter's lock.
lazy::Device* DeviceFromString(const std::string& name);
std::string DeviceToString(const lazy::Device* device);

// Whether a sync that leaves tensors as they are (sync_xla_data=False) donates what the user wishes
// to donate.
bool HeedsDonations();

// Calls `f` without the interpreter's lock: whatever may wait, for the runtime to start, for the
// device, for a file, or for a lock whose holder may want the interpreter's.
template <typename F>
auto WithoutGil(F&& f) {
  pybind11::gil_scoped_release release;
  return std::forward<F>(f)();
}

}  // namespace torch_xla
