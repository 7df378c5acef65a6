// The plugin's profiler: programs and their steps, as XLA's profilers tell of them.
#include "pjrt/plugin/profiler.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "cpu/peaks.h"
#include "hlo/hash.h"
#include "pjrt/boundary/profiler_extension.h"
#include "pjrt/wire/proto.h"
#include "pjrt/wire/xspace.h"
#include "process/clock.h"

namespace pjrt::plugin {

using namespace boundary;

std::atomic<bool> runs_are_recorded{false};

namespace {

// Of one profiler, in runs and steps: about 200 MB.
constexpr size_t kMostSteps = 4'000'000;

class RunProfiler;

struct Profilers {
  std::mutex mutex;
  std::vector<RunProfiler*> running;
  static Profilers& Get() {
    static auto* profilers = new Profilers;
    return *profilers;
  }
};

// What one profiler has seen since it was started.
struct Collection {
  int64_t start_ns = 0;  // since the epoch
  int64_t epoch_ns = 0;  // the epoch's clock less the steady one
  std::vector<std::shared_ptr<const ProgramRun>> runs;
  size_t num_steps = 0;
  int64_t lost = 0;
};

// A MemoryAccessBreakdown of op_metrics.proto: all in the device's main memory.
std::string MemoryAccess(const cpu::StepDescription& step) {
  constexpr int64_t kRead = 1, kWrite = 2, kMainMemory = 1;
  ProtoWriter breakdown;
  for (const auto& [kind, bytes] :
       {std::pair(kRead, step.bytes_read), std::pair(kWrite, step.bytes_written)}) {
    ProtoWriter access;
    access.Varint(1, kind);
    access.Varint(2, kMainMemory);
    access.Varint(3, bytes);
    breakdown.Message(1, access);
  }
  return breakdown.bytes();
}

// The profile of one device. The viewers know the planes of TPUs and GPUs by their names, and take
// the programs and operations of any device that is compiled for from the first kind; the device's
// own type is a stat.
class DevicePlane {
 public:
  DevicePlane(int device_id, const Collection& collection)
      : collection_(collection), builder_("/device:TPU:" + std::to_string(device_id)) {
    builder_.plane().id = device_id;
    builder_.plane().stats = {builder_.Stat("device_type_string", std::string("CPU"))};
    AddPeaks();
    // Viewers draw the lines in this order.
    for (const char* name : {"Steps", "XLA Modules", "XLA Ops"}) {
      auto& lines = builder_.plane().lines;
      lines.push_back({static_cast<int64_t>(lines.size()) + 1, name, collection.start_ns, {}});
    }
  }

  void Add(const ProgramRun& run) {
    line(0).events.push_back(Timed(StepEvent(++num_runs_), run.start_ns, run.end_ns));
    line(1).events.push_back(Timed(ModuleEvent(run), run.start_ns, run.end_ns));
    std::vector<cpu::StepTime> steps = run.steps;
    // A loop comes before the steps of its body.
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) {
      return std::pair(a.start_ns, -a.end_ns) < std::pair(b.start_ns, -b.end_ns);
    });
    for (const cpu::StepTime& step : steps) {
      XEvent event{OperationNumber(*run.program, *step.description), 0, 0, {}};
      if (run.launch_id != 0) event.stats.push_back(RunNumber(run));
      line(2).events.push_back(Timed(std::move(event), step.start_ns, step.end_ns));
    }
  }

  XPlane Take() {
    // A step lasts until the next begins: what the device waits for is part of it.
    std::vector<XEvent>& steps = line(0).events;
    for (size_t i = 0; i + 1 < steps.size(); ++i) {
      steps[i].duration_ps = steps[i + 1].offset_ps - steps[i].offset_ps;
    }
    return std::move(builder_.plane());
  }

 private:
  // Viewers show shares of them, and do without where memory is short.
  void AddPeaks() {
    try {
      const cpu::Peaks& peaks = cpu::MeasuredPeaks();
      std::vector<XStat>& stats = builder_.plane().stats;
      stats.push_back(builder_.Stat("peak_teraflops_per_second", peaks.flops * 1e-12));
      stats.push_back(builder_.Stat("peak_hbm_bw_gigabytes_per_second", peaks.bytes * 1e-9));
    } catch (const std::exception&) {
    }
  }

  XLine& line(size_t i) { return builder_.plane().lines[i]; }

  XEvent Timed(XEvent event, int64_t start_ns, int64_t end_ns) const {
    event.offset_ps = (start_ns + collection_.epoch_ns - collection_.start_ns) * 1000;
    event.duration_ps = (end_ns - start_ns) * 1000;
    return event;
  }

  XStat RunNumber(const ProgramRun& run) {
    return builder_.Stat("run_id", uint64_t{static_cast<uint32_t>(run.launch_id)});
  }

  // Runs are the steps, for callers who say nothing about theirs.
  XEvent StepEvent(int64_t number) {
    const std::string name = std::to_string(number);
    return {builder_.EventNumber(name),
            0,
            0,
            {builder_.Stat("group_id", number), builder_.Stat("step_name", name)}};
  }

  static uint64_t ProgramNumber(const CompiledProgram& program) {
    return hlo::HashText(program.fingerprint) >> 1;
  }

  XEvent ModuleEvent(const ProgramRun& run) {
    const uint64_t number = ProgramNumber(*run.program);
    XEvent event{
        builder_.EventNumber(run.program->name + "(" + std::to_string(number) + ")"), 0, 0, {}};
    event.stats.push_back(builder_.Stat("program_id", number));
    if (run.launch_id != 0) event.stats.push_back(RunNumber(run));
    return event;
  }

  // What is true of each run of the step belongs to its kind.
  int64_t OperationNumber(const CompiledProgram& program, const cpu::StepDescription& step) {
    auto [found, is_new] = operations_.try_emplace(&step, 0);
    if (!is_new) return found->second;
    const uint64_t program_number = ProgramNumber(program);
    // Equal texts of two programs are two operations.
    const int64_t number =
        builder_.EventNumber(step.text + " // " + std::to_string(program_number) + step.name);
    found->second = number;
    XEventMetadata metadata{number, step.text, step.name, "", {}};
    auto add = [&](const char* name, XValue value) {
      metadata.stats.push_back(builder_.Stat(name, std::move(value)));
    };
    add("program_id", program_number);
    add("symbol_id", static_cast<uint64_t>(number));
    metadata.stats.push_back(builder_.SharedText("hlo_category", step.category));
    add("flops", static_cast<uint64_t>(step.flops));
    add("model_flops", static_cast<uint64_t>(step.flops));
    add("bytes_accessed", static_cast<uint64_t>(step.bytes_read + step.bytes_written));
    add("memory_access_breakdown", XBytes{MemoryAccess(step)});
    if (!step.operation.empty()) add("tf_op", step.operation);
    if (step.source_line != 0) {
      add("source", step.source_file + ":" + std::to_string(step.source_line));
    }
    builder_.event_metadata(number) = std::move(metadata);
    return number;
  }

  const Collection& collection_;
  XPlaneBuilder builder_;
  std::map<const cpu::StepDescription*, int64_t> operations_;
  int64_t num_runs_ = 0;
};

std::string SerializedSpace(Collection& collection) {
  std::map<int, DevicePlane> planes;
  std::sort(collection.runs.begin(), collection.runs.end(),
            [](const auto& a, const auto& b) { return a->start_ns < b->start_ns; });
  for (const auto& run : collection.runs) {
    planes.try_emplace(run->device_id, run->device_id, collection).first->second.Add(*run);
  }
  XSpace space;
  for (auto& [id, plane] : planes) space.planes.push_back(plane.Take());
  if (collection.lost > 0) {
    space.warnings.push_back(std::to_string(collection.lost) +
                             " runs of programs were lost; collect for a shorter time");
  }
  return Serialize(space);
}

class RunProfiler final : public DeviceProfiler {
 public:
  ~RunProfiler() override { StopRecording(); }

  void Start() override {
    Profilers& profilers = Profilers::Get();
    std::lock_guard lock(profilers.mutex);
    collection_ = {};
    collection_.start_ns = process::NowNanoseconds<std::chrono::system_clock>();
    collection_.epoch_ns = collection_.start_ns - process::NowNanoseconds();
    profilers.running.push_back(this);
    runs_are_recorded = true;
  }

  void Stop() override { StopRecording(); }

  std::string Collect() override { return SerializedSpace(collection_); }

  // Under the lock of the list.
  void Add(const std::shared_ptr<const ProgramRun>& run) {
    if (run->start_ns + collection_.epoch_ns < collection_.start_ns) return;
    collection_.num_steps += 2 + run->steps.size();
    if (collection_.num_steps <= kMostSteps) {
      collection_.runs.push_back(run);
    } else {
      ++collection_.lost;
    }
  }

 private:
  void StopRecording() {
    Profilers& profilers = Profilers::Get();
    std::lock_guard lock(profilers.mutex);
    std::erase(profilers.running, this);
    runs_are_recorded = !profilers.running.empty();
  }

  Collection collection_;  // while it is running, under the lock of the list
};

}  // namespace

void RecordRun(ProgramRun run) {
  auto shared = std::make_shared<const ProgramRun>(std::move(run));
  Profilers& profilers = Profilers::Get();
  std::lock_guard lock(profilers.mutex);
  for (RunProfiler* profiler : profilers.running) profiler->Add(shared);
}

}  // namespace pjrt::plugin

namespace pjrt::boundary {

std::unique_ptr<DeviceProfiler> NewDeviceProfiler() {
  return std::make_unique<plugin::RunProfiler>();
}

}  // namespace pjrt::boundary
