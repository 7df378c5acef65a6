// What the debug reports of the package (torch_xla/debug) are told.
#include <pybind11/functional.h>
#include <torch/csrc/utils/pybind.h>

#include <algorithm>

#include "hlo/text_writer.h"
#include "lazy/graph_observer.h"
#include "lazy/live_data.h"
#include "lazy/location.h"
#include "python/bindings.h"
#include "python/recorded_at.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

const char* NameOf(lazy::GraphEvent::Stage stage) {
  switch (stage) {
    case lazy::GraphEvent::Stage::kCut:
      return "cut";
    case lazy::GraphEvent::Stage::kCompile:
      return "compile";
    case lazy::GraphEvent::Stage::kCompiled:
      return "compiled";
    case lazy::GraphEvent::Stage::kExecute:
      return "execute";
    case lazy::GraphEvent::Stage::kRefused:
      return "refused";
  }
  return "";
}

const char* NameOf(lazy::CutReason::Kind kind) {
  switch (kind) {
    case lazy::CutReason::Kind::kUnknown:
      return "unknown";
    case lazy::CutReason::Kind::kCaller:
      return "caller";
    case lazy::CutReason::Kind::kRead:
      return "read";
    case lazy::CutReason::Kind::kFallback:
      return "fallback";
    case lazy::CutReason::Kind::kUpload:
      return "upload";
  }
  return "";
}

py::object LocationTuple(const lazy::SourceLocation* location) {
  if (location == nullptr) return py::none();
  return py::make_tuple(location->file, location->line, location->function, location->is_backward);
}

// (file, line) of those who called, the nearest first.
py::tuple Callers(const lazy::CallPath* path) {
  py::list callers;
  for (path = path != nullptr ? path->caller : nullptr; path != nullptr; path = path->caller) {
    callers.append(py::make_tuple(path->location->file, path->location->line));
  }
  return py::tuple(callers);
}

// One of the observer's events, while the observer is called.
class GraphEventView {
 public:
  explicit GraphEventView(const lazy::GraphEvent& event) : event_(&event) {}
  void End() { event_ = nullptr; }

  const lazy::GraphEvent& event() const {
    TORCH_CHECK(event_ != nullptr,
                "the event is over: a graph can be looked at while its observer is called");
    return *event_;
  }
  const lazy::Graph& graph() const {
    TORCH_CHECK(event().graph != nullptr, "this event has no graph");
    return *event().graph;
  }
  // The program that is compiled.
  std::unique_ptr<hlo::Module> Lower() const { return graph().Lower("IrToHlo", event().varies); }
  py::list Nodes() const {
    py::list nodes;
    for (const lazy::Node* node : graph().nodes()) {
      py::list operands;
      for (const lazy::Value& operand : node->operands()) {
        operands.append(py::make_tuple(operand.node->position, operand.index));
      }
      std::vector<std::string> shapes;
      for (lazy::ShapeRef shape : node->operation()->result_shapes()) {
        shapes.push_back(shape == nullptr ? "none" : shape->ToString());
      }
      nodes.append(py::make_tuple(node->operation()->kind().name, node->AttributesText(), shapes,
                                  operands, LocationTuple(lazy::LocationOf(node)),
                                  lazy::LeafName(node), Callers(lazy::CallPathOf(node))));
    }
    return nodes;
  }
  py::list Results() const {
    py::list results;
    for (const lazy::Value& result : graph().results()) {
      results.append(py::make_tuple(result.node->position, result.index));
    }
    return results;
  }

 private:
  const lazy::GraphEvent* event_;
};

void BindGraphEvent(py::module_& m) {
  py::class_<GraphEventView>(m, "GraphEvent")
      .def_property_readonly("stage",
                             [](const GraphEventView& v) { return NameOf(v.event().stage); })
      .def_property_readonly("hash", [](const GraphEventView& v) { return v.event().hash; })
      .def_property_readonly("inputs", [](const GraphEventView& v) { return v.event().inputs; })
      .def_property_readonly("outputs", [](const GraphEventView& v) { return v.event().outputs; })
      .def_property_readonly("name", [](const GraphEventView& v) { return v.event().name; })
      .def_property_readonly("seconds", [](const GraphEventView& v) { return v.event().seconds; })
      .def_property_readonly("operators",
                             [](const GraphEventView& v) {
                               const auto& nodes = v.graph().nodes();
                               return std::count_if(
                                   nodes.begin(), nodes.end(), [](const auto* node) {
                                     return node->role() == lazy::Node::Role::kOperation;
                                   });
                             })
      .def_property_readonly("donations",
                             [](const GraphEventView& v) { return v.graph().donations().size(); })
      .def_property_readonly("reason",
                             [](const GraphEventView& v) {
                               const lazy::CutReason& reason = v.event().reason;
                               return py::make_tuple(NameOf(reason.kind), std::string(reason.text));
                             })
      .def_property_readonly("memory",
                             [](const GraphEventView& v) {
                               const pjrt::CompiledMemoryStats& memory = v.event().memory;
                               py::dict out;
                               out["inputs"] = memory.arguments;
                               out["outputs"] = memory.outputs;
                               out["aliased"] = memory.aliased;
                               out["temporaries"] = memory.temporaries;
                               out["code"] = memory.generated_code;
                               return out;
                             })
      .def("nodes", &GraphEventView::Nodes)
      .def("results", &GraphEventView::Results)
      .def("text", [](const GraphEventView& v) { return v.graph().ToText(); })
      .def("dot", [](const GraphEventView& v) { return v.graph().ToDot(); })
      .def_property_readonly("varies", [](const GraphEventView& v) { return v.event().varies; })
      .def("hlo", [](const GraphEventView& v) { return v.Lower()->ToString(); })
      .def("stablehlo", [](const GraphEventView& v) {
        return hlo::WriteStablehloText(*v.Lower(), {.locations = lazy::ProgramsHaveLocations()});
      });
}

// Its exceptions are shown and do no harm.
void Call(const py::object& observer, const lazy::GraphEvent& event) {
  if (!Py_IsInitialized()) return;
  py::gil_scoped_acquire gil;
  try {
    py::object view = py::cast(GraphEventView(event));
    observer(view);
    view.cast<GraphEventView&>().End();
  } catch (py::error_already_set& error) {
    error.discard_as_unraisable("an observer of torch_xla's graphs");
  }
}

// Kept for ever: an event may come while the interpreter shuts down.
void SetGraphObserver(const py::object& observer) {
  std::function<void(const lazy::GraphEvent&)> function;
  if (!observer.is_none()) {
    auto* kept = new py::object(observer);
    function = [kept](const lazy::GraphEvent& event) { Call(*kept, event); };
  }
  WithoutGil([&] { lazy::SetGraphObserver(std::move(function)); });
}

void SetWaitObserver(const py::object& observer) {
  if (observer.is_none()) {
    lazy::SetWaitObserver(nullptr);
    return;
  }
  auto* kept = new py::object(observer);
  lazy::SetWaitObserver([kept](const lazy::CutReason& reason, double seconds) {
    if (!Py_IsInitialized()) return;
    py::gil_scoped_acquire gil;
    // The operator may be on its way out with an exception of Python's.
    py::error_scope preserved;
    try {
      (*kept)(NameOf(reason.kind), std::string(reason.text), seconds);
    } catch (py::error_already_set& error) {
      error.discard_as_unraisable("an observer of torch_xla's waits");
    }
  });
}

py::list LiveTensors() {
  py::list out;
  for (const lazy::LiveTensors& entry : WithoutGil([] { return lazy::ListLiveTensors(); })) {
    out.append(py::make_tuple(DeviceToString(entry.device), entry.shape->ToString(), entry.made_by,
                              LocationTuple(entry.location), entry.count, entry.bytes));
  }
  return out;
}

}  // namespace

void BindDebugging(py::module_& m) {
  BindGraphEvent(m);
  m.def("_set_graph_observer", &SetGraphObserver);
  m.def("_set_wait_observer", &SetWaitObserver);
  m.def("_keep_locations", &KeepLocations);
  m.def("_set_ir_debug", &KeepLocations);
  m.def("_get_ir_debug", &lazy::HasLocationProvider);
  m.def("_location_seconds", &LocationSeconds);
  m.def("_put_locations_into_programs", &lazy::SetProgramsHaveLocations);
  m.def("_live_tensors", &LiveTensors);
}

}  // namespace torch_xla
