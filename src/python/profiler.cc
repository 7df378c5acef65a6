// Profiles, and spans that the user's program names.
#include <pybind11/stl.h>

#include <memory>
#include <unordered_map>
#include <utility>

#include "aten/torch_profiler.h"
#include "lazy/location.h"
#include "lazy/profile.h"
#include "lazy/span.h"
#include "pjrt/wire/xspace.h"
#include "python/bindings.h"

namespace torch_xla {
namespace {

namespace py = pybind11;

lazy::SpanValue ToSpanValue(const py::handle& value) {
  if (py::isinstance<py::int_>(value) && !py::isinstance<py::bool_>(value)) {
    int overflows = 0;
    const int64_t number = PyLong_AsLongLongAndOverflow(value.ptr(), &overflows);
    if (overflows == 0) return number;
  }
  if (py::isinstance<py::float_>(value)) return value.cast<double>();
  return py::str(value).cast<std::string>();
}

// A context that is a span.
class TraceMe {
 public:
  TraceMe(std::string name, py::dict arguments)
      : name_(std::move(name)), arguments_(std::move(arguments)) {}

  TraceMe* Enter() {
    Leave();  // entered twice, it is left once
    span_ = std::make_unique<lazy::Span>(name_);
    if (*span_) SetMetadata(arguments_);
    section_ = std::make_unique<lazy::Section>(name_);
    return this;
  }
  void Exit(const py::args&) { Leave(); }
  void SetMetadata(const py::dict& arguments) {
    if (span_ == nullptr || !*span_) return;
    for (const auto& [name, value] : arguments) {
      span_->Add(py::str(name).cast<std::string>(), ToSpanValue(value));
    }
  }

 private:
  void Leave() {
    section_.reset();
    span_.reset();
  }

  std::string name_;
  py::dict arguments_;
  std::unique_ptr<lazy::Span> span_;
  std::unique_ptr<lazy::Section> section_;
};

// An XSpace as tuples and dictionaries; the names of stats and events are objects that their uses
// share.
class PlaneView {
 public:
  explicit PlaneView(const pjrt::XPlane& plane) : plane_(plane) {
    for (const auto& [number, name] : plane.stat_names) stat_names_[number] = Text(name);
    for (const pjrt::XEventMetadata& metadata : plane.event_metadata) {
      events_[metadata.id] = {
          Text(metadata.name),
          Text(metadata.display_name.empty() ? metadata.name : metadata.display_name),
          &metadata.stats};
    }
  }

  py::tuple ToTuple() const {
    py::list lines;
    for (const pjrt::XLine& line : plane_.lines) lines.append(ToTuple(line));
    return py::make_tuple(Text(plane_.name), ToDict(plane_.stats), lines);
  }

 private:
  struct EventKind {
    py::object name, display_name;
    const std::vector<pjrt::XStat>* stats = nullptr;
  };

  // Plugins' texts need not be UTF-8.
  static py::object Text(const std::string& text) {
    return py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace"));
  }

  py::object ToObject(const pjrt::XValue& value) const {
    if (const auto* text = std::get_if<std::string>(&value)) return Text(*text);
    if (const auto* bytes = std::get_if<pjrt::XBytes>(&value)) return py::bytes(bytes->bytes);
    if (const auto* reference = std::get_if<pjrt::XReference>(&value)) {
      auto found = stat_names_.find(static_cast<int64_t>(reference->metadata_id));
      return found == stat_names_.end() ? py::object(py::str("")) : found->second;
    }
    if (const auto* real = std::get_if<double>(&value)) return py::float_(*real);
    if (const auto* number = std::get_if<uint64_t>(&value)) return py::int_(*number);
    return py::int_(std::get<int64_t>(value));
  }

  void AddTo(py::dict& out, const std::vector<pjrt::XStat>& stats) const {
    for (const pjrt::XStat& stat : stats) {
      auto name = stat_names_.find(stat.metadata_id);
      if (name != stat_names_.end()) out[name->second] = ToObject(stat.value);
    }
  }
  py::dict ToDict(const std::vector<pjrt::XStat>& stats) const {
    py::dict out;
    AddTo(out, stats);
    return out;
  }

  py::tuple ToTuple(const pjrt::XLine& line) const {
    py::list events;
    for (const pjrt::XEvent& event : line.events) {
      py::dict stats;
      EventKind kind{py::str(""), py::str("")};
      if (auto found = events_.find(event.metadata_id); found != events_.end()) {
        kind = found->second;
        AddTo(stats, *kind.stats);
      }
      AddTo(stats, event.stats);
      events.append(py::make_tuple(kind.name, kind.display_name,
                                   line.timestamp_ns * 1000 + event.offset_ps, event.duration_ps,
                                   stats));
    }
    return py::make_tuple(line.id, Text(line.name), events);
  }

  const pjrt::XPlane& plane_;
  std::unordered_map<int64_t, py::object> stat_names_;
  std::unordered_map<int64_t, EventKind> events_;
};

py::tuple ParseXSpace(const py::bytes& bytes) {
  const std::string_view view = bytes;
  const pjrt::XSpace space = WithoutGil([&] { return pjrt::ParseXSpace(view); });
  py::list planes;
  for (const pjrt::XPlane& plane : space.planes) planes.append(PlaneView(plane).ToTuple());
  return py::make_tuple(planes, space.hostnames, space.warnings, space.errors);
}

}  // namespace

void BindProfiler(py::module_& m) {
  ShowSpansToTorchProfiler();
  m.def("_start_profile", [] { WithoutGil([] { lazy::StartProfile(); }); });
  m.def("_is_profiling", [] { return WithoutGil([] { return lazy::IsProfiling(); }); });
  m.def("_stop_profile", [] { return py::bytes(WithoutGil([] { return lazy::StopProfile(); })); });
  m.def("_parse_xspace", &ParseXSpace);
  py::class_<TraceMe>(m, "_TraceMe")
      .def(py::init([](std::string name, const py::kwargs& arguments) {
             return TraceMe(std::move(name), arguments);
           }),
           py::arg("name"))
      .def("__enter__", &TraceMe::Enter, py::return_value_policy::reference)
      .def("__exit__", &TraceMe::Exit)
      .def("set_metadata",
           [](TraceMe& trace, const py::kwargs& arguments) { trace.SetMetadata(arguments); });
}

}  // namespace torch_xla
