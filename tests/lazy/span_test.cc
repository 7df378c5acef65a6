#include "lazy/span.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "lazy/profile_planes.h"

namespace lazy {
namespace {

std::vector<std::string> NamesOf(const SpanLine& line) {
  std::vector<std::string> names;
  for (const SpanRecord& span : line.spans) names.push_back(span.name);
  return names;
}

using Names = std::vector<std::string>;

TEST(SpanTest, CostsNothingWhileNobodyListens) {
  Span span("quiet");
  EXPECT_FALSE(span);
  span.Add("ignored", int64_t{1});
  EXPECT_EQ(SpansRecordedSince(), 0);
  EXPECT_FALSE(spans_are_wanted);
}

TEST(SpanTest, RecordsWhatBeginsAndEndsMeanwhile) {
  Span before("before");
  ASSERT_TRUE(StartRecordingSpans());
  EXPECT_FALSE(StartRecordingSpans());
  before.End();
  auto after = std::make_unique<Span>("after");
  {
    Span outer("outer ", "detail");
    EXPECT_TRUE(outer);
    outer.Add("bytes", int64_t{3});
    Span inner("inner");
  }
  RecordedSpans recorded = StopRecordingSpans();
  after.reset();
  ASSERT_EQ(recorded.lines.size(), 1u);
  EXPECT_EQ(NamesOf(recorded.lines[0]), (Names{"inner", "outer detail"}));
  const SpanRecord &inner = recorded.lines[0].spans[0], &outer = recorded.lines[0].spans[1];
  EXPECT_LE(recorded.start_ns, outer.start_ns);
  EXPECT_LE(outer.start_ns, inner.start_ns);
  EXPECT_LE(inner.start_ns, inner.end_ns);
  EXPECT_LE(inner.end_ns, outer.end_ns);
  EXPECT_LE(outer.end_ns, recorded.stop_ns);
  ASSERT_EQ(outer.arguments.size(), 1u);
  EXPECT_EQ(outer.arguments[0].first, "bytes");
  EXPECT_EQ(std::get<int64_t>(outer.arguments[0].second), 3);
  EXPECT_FALSE(spans_are_wanted);
}

TEST(SpanTest, EachThreadHasALine) {
  ASSERT_TRUE(StartRecordingSpans());
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < 1000; ++i) Span span("work");
    });
  }
  for (std::thread& thread : threads) thread.join();
  RecordSpan("device", {"between", 0, SpanClock(), {}});
  RecordedSpans recorded = StopRecordingSpans();
  ASSERT_EQ(recorded.lines.size(), 5u);
  for (int t = 0; t < 4; ++t) EXPECT_EQ(recorded.lines[t].spans.size(), 1000u);
  const SpanLine& device = recorded.lines[4];
  EXPECT_EQ(device.name, "device");
  // It cannot have begun before the recording did.
  EXPECT_EQ(device.spans[0].start_ns, recorded.start_ns);
  EXPECT_EQ(recorded.lost, 0);
}

TEST(SpanTest, NothingIsLeftForTheNextRecording) {
  ASSERT_TRUE(StartRecordingSpans());
  {
    Span span("first");
  }
  auto open = std::make_unique<Span>("open");
  StopRecordingSpans();
  ASSERT_TRUE(StartRecordingSpans());
  open.reset();
  {
    Span span("second");
  }
  RecordedSpans recorded = StopRecordingSpans();
  ASSERT_EQ(recorded.lines.size(), 1u);
  EXPECT_EQ(NamesOf(recorded.lines[0]), Names{"second"});
}

TEST(SpanTest, ThreadsThatEndWhileRecordingStops) {
  for (int round = 0; round < 50; ++round) {
    ASSERT_TRUE(StartRecordingSpans());
    std::thread thread([] {
      for (int i = 0; i < 100; ++i) Span span("work");
    });
    StopRecordingSpans();
    thread.join();
  }
}

// "Steps", "XLA Modules" and "XLA Ops" as the engine makes them, of programs with these run numbers
// and starts.
pjrt::XSpace EngineSpace(const std::vector<std::pair<uint64_t, int64_t>>& runs,
                         const std::string& type = "CPU") {
  pjrt::XPlaneBuilder builder("/device:TPU:0");
  builder.plane().stats = {builder.Stat("device_type_string", type)};
  pjrt::XLine steps{1, "Steps", 0, {}}, modules{2, "XLA Modules", 0, {}};
  for (const auto& [run, start] : runs) {
    steps.events.push_back({builder.EventNumber("run"), start, 10, {}});
    modules.events.push_back(
        {builder.EventNumber("program"), start, 10, {builder.Stat("run_id", run)}});
  }
  builder.plane().lines = {steps, modules};
  pjrt::XSpace space;
  space.planes.push_back(std::move(builder.plane()));
  return space;
}

const pjrt::XEventMetadata& MetadataOf(const pjrt::XPlane& plane, const pjrt::XEvent& event) {
  for (const auto& metadata : plane.event_metadata) {
    if (metadata.id == event.metadata_id) return metadata;
  }
  throw std::out_of_range("no such event");
}

TEST(MarkStepsTest, AStepLastsUntilTheNextBegins) {
  SpanLine line;
  line.spans = {{"train", 100, 200, {{"step_num", int64_t{7}}}},
                {"xla::execute", 110, 120, {{"run_id", int64_t{1}}}},
                {"xla::execute", 130, 140, {{"run_id", int64_t{2}}}},
                {"train", 200, 300, {{"step_num", int64_t{8}}}},
                {"xla::execute", 210, 220, {{"run_id", int64_t{3}}}},
                {"xla::execute", 310, 320, {{"run_id", int64_t{4}}}}};
  pjrt::XSpace space = EngineSpace({{9, 0}, {1, 1000}, {2, 2000}, {3, 5000}, {4, 9000}});
  MarkSteps({line}, space);
  const pjrt::XPlane& plane = space.planes[0];
  const auto& steps = plane.lines[0].events;
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(MetadataOf(plane, steps[0]).name, "7");
  EXPECT_EQ(steps[0].offset_ps, 1000);
  EXPECT_EQ(steps[0].duration_ps, 4000);
  EXPECT_EQ(MetadataOf(plane, steps[1]).name, "8");
  EXPECT_EQ(steps[1].offset_ps, 5000);
  EXPECT_EQ(steps[1].duration_ps, 10);
}

TEST(MarkStepsTest, OtherPlanesAndProgramsWithoutStepsAreLeftAlone) {
  SpanLine line;
  line.spans = {{"xla::execute", 110, 120, {{"run_id", int64_t{1}}}}};
  pjrt::XSpace space = EngineSpace({{1, 1000}});
  MarkSteps({line}, space);
  EXPECT_EQ(space.planes[0].lines[0].events.size(), 1u);
  EXPECT_EQ(MetadataOf(space.planes[0], space.planes[0].lines[0].events[0]).name, "run");

  line.spans.push_back({"train", 100, 200, {{"step_num", int64_t{7}}}});
  space = EngineSpace({{1, 1000}}, "TPU v5e");
  MarkSteps({line}, space);
  EXPECT_EQ(MetadataOf(space.planes[0], space.planes[0].lines[0].events[0]).name, "run");
}

TEST(HostPlaneTest, JoinsWhatThePluginTellsOfTheHost) {
  pjrt::XPlaneBuilder own("/host:CPU");
  pjrt::XLine thread{5, "other name", 1000, {}}, worker{6, "worker", 3000, {}};
  own.EventNumber("unused");
  thread.events.push_back({own.EventNumber("inside"),
                           1'000'000,
                           1'000'000,
                           {own.Stat("bytes", int64_t{8}), own.SharedText("kind", "copy")}});
  worker.events.push_back({own.EventNumber("task"), 0, 7, {}});
  own.plane().lines = {thread, worker};
  pjrt::XSpace plugins;
  plugins.planes = {own.plane(), pjrt::XPlaneBuilder("/device:GPU:0").plane()};

  RecordedSpans recorded;
  recorded.start_ns = 1500;
  recorded.lines = {{5, "python", {{"outer", 1600, 9000, {{"n", int64_t{1}}}}}}};
  const pjrt::XPlane plane = HostPlane(recorded, plugins);
  ASSERT_EQ(plugins.planes.size(), 1u);
  EXPECT_EQ(plugins.planes[0].name, "/device:GPU:0");
  ASSERT_EQ(plane.lines.size(), 2u);
  const pjrt::XLine& line = plane.lines[0];
  EXPECT_EQ(line.name, "python");
  ASSERT_EQ(line.events.size(), 2u);
  EXPECT_EQ(MetadataOf(plane, line.events[0]).name, "outer");
  EXPECT_EQ(MetadataOf(plane, line.events[1]).name, "inside");
  // 2000 ns since the epoch, on the line that counts from 1500.
  EXPECT_EQ(line.events[1].offset_ps, 500'000);
  ASSERT_EQ(line.events[1].stats.size(), 2u);
  EXPECT_EQ(plane.stat_names.at(line.events[1].stats[0].metadata_id), "bytes");
  const auto kind = std::get<pjrt::XReference>(line.events[1].stats[1].value);
  EXPECT_EQ(plane.stat_names.at(static_cast<int64_t>(kind.metadata_id)), "copy");
  EXPECT_EQ(MetadataOf(plane, plane.lines[1].events.at(0)).name, "task");
  EXPECT_EQ(plane.lines[1].timestamp_ns, 3000);
}

}  // namespace
}  // namespace lazy
