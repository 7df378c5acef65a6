// Plugins' profilers through the client, and the bytes that they return.
#include "pjrt/client/profiler.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "engines.h"
#include "pjrt/wire/proto.h"
#include "pjrt/wire/xspace.h"

namespace pjrt {
namespace {

// Each field says what it holds; a number where a text should be is none of the field before.
TEST(XSpaceBytes, FieldsOfAnotherKindAreRefused) {
  ProtoWriter number, plane, text;
  number.Bytes(2, "name");
  number.Varint(2, 7);
  plane.Bytes(1, number.bytes());
  EXPECT_THROW(ParseXSpace(plane.bytes()), hlo::Error);
  text.Varint(1, 7);
  text.Bytes(1, "a text for the plane's number");
  ProtoWriter other;
  other.Bytes(1, text.bytes());
  EXPECT_THROW(ParseXSpace(other.bytes()), hlo::Error);
}

XSpace ExampleSpace() {
  XPlaneBuilder builder("/device:TPU:0");
  builder.plane().id = 3;
  XLine line{-2, "XLA Ops", 1'700'000'000'000'000'000, {}};
  const int64_t number = builder.EventNumber("add");
  EXPECT_EQ(builder.EventNumber("add"), number);
  line.events.push_back(
      {number,
       5,
       7,
       {builder.Stat("signed", int64_t{-1}), builder.Stat("unsigned", ~uint64_t{0}),
        builder.Stat("real", 0.5), builder.Stat("text", std::string("a\0b", 3)),
        builder.Stat("bytes", XBytes{"\xff"})}});
  builder.event_metadata(number).display_name = "add.1";
  builder.event_metadata(number).stats = {builder.SharedText("category", "loop fusion")};
  builder.plane().lines.push_back(line);
  XSpace space;
  space.planes.push_back(builder.plane());
  space.errors = {"error"};
  space.warnings = {"warning", ""};
  space.hostnames = {"host"};
  return space;
}

TEST(XSpaceTest, ComesBackAsItWas) {
  const XSpace space = ExampleSpace(), read = ParseXSpace(Serialize(space));
  ASSERT_EQ(read.planes.size(), 1u);
  const XPlane &plane = read.planes[0], &expected = space.planes[0];
  EXPECT_EQ(plane.name, expected.name);
  EXPECT_EQ(plane.id, 3);
  EXPECT_EQ(plane.stat_names, expected.stat_names);
  const XLine& line = plane.lines.at(0);
  EXPECT_EQ(line.id, -2);
  EXPECT_EQ(line.timestamp_ns, expected.lines[0].timestamp_ns);
  const XEvent &event = line.events.at(0), &expected_event = expected.lines[0].events[0];
  EXPECT_EQ(event.offset_ps, 5);
  EXPECT_EQ(event.duration_ps, 7);
  ASSERT_EQ(event.stats.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(event.stats[i].value, expected_event.stats[i].value);
  const XEventMetadata& metadata = plane.event_metadata.at(0);
  EXPECT_EQ(metadata.display_name, "add.1");
  const auto category = std::get<XReference>(metadata.stats.at(0).value);
  EXPECT_EQ(plane.stat_names.at(static_cast<int64_t>(category.metadata_id)), "loop fusion");
  EXPECT_EQ(read.errors, space.errors);
  EXPECT_EQ(read.warnings, space.warnings);
  EXPECT_EQ(read.hostnames, space.hostnames);
}

TEST(XSpaceTest, ConcatenationIsUnion) {
  const std::string bytes = Serialize(ExampleSpace());
  EXPECT_EQ(ParseXSpace(bytes + bytes).planes.size(), 2u);
}

// As XLA's profilers hand their traces over.
TEST(XSpaceTest, AZeroBehindItIsItsEnd) {
  const std::string bytes = Serialize(ExampleSpace());
  EXPECT_EQ(Serialize(ParseXSpace(bytes + '\0')), Serialize(ParseXSpace(bytes)));
}

TEST(XSpaceTest, BrokenBytesAreErrorsOrOtherSpaces) {
  const std::string bytes = Serialize(ExampleSpace());
  int errors = 0;
  for (size_t cut = 0; cut < bytes.size(); ++cut) {
    for (const bool flip : {false, true}) {
      std::string broken = bytes;
      if (flip) {
        broken[cut] = static_cast<char>(~broken[cut]);
      } else {
        broken.resize(cut);
      }
      try {
        ParseXSpace(broken);
      } catch (const hlo::Error& error) {
        ++errors;
      }
    }
  }
  EXPECT_GT(errors, 100);
}

class ProfilerTest : public testing::Test {
 protected:
  void SetUp() override {
    client_ = ClientOf(OurEngine());
    ASSERT_NE(client_, nullptr) << "the plugin is not built";
    executable_ = client_->Compile(*SumAndProduct());
    const float values[] = {1, 2, 3, 4};
    x_ = client_->BufferFromHost(values, kVector, *client_->addressable_devices()[0]);
  }
  void Run(int launch_id) {
    ExecuteOptions options;
    options.launch_id = launch_id;
    const Buffer* arguments[] = {x_.get(), x_.get()};
    executable_->Execute(arguments, options).done.Await();
  }
  // The events of a line, by their display names.
  static std::vector<std::string> Names(const XPlane& plane, const std::string& line_name) {
    std::vector<std::string> names;
    for (const XLine& line : plane.lines) {
      if (line.name != line_name) continue;
      for (const XEvent& event : line.events) {
        for (const XEventMetadata& metadata : plane.event_metadata) {
          if (metadata.id != event.metadata_id) continue;
          names.push_back(metadata.display_name.empty() ? metadata.name : metadata.display_name);
        }
      }
    }
    return names;
  }

  std::shared_ptr<Client> client_;
  std::unique_ptr<LoadedExecutable> executable_;
  std::unique_ptr<Buffer> x_;
};

TEST_F(ProfilerTest, TellsOfProgramsAndTheirSteps) {
  ASSERT_TRUE(Profiler::IsOfferedBy(client_->plugin()));
  Profiler profiler(client_->plugin());
  Run(1);
  profiler.Start();
  Run(7);
  Run(8);
  profiler.Stop();
  Run(9);
  executable_.reset();  // what it ran is still known
  const XSpace space = ParseXSpace(profiler.Collect());
  ASSERT_EQ(space.planes.size(), 1u);
  const XPlane& plane = space.planes[0];
  EXPECT_EQ(plane.name, "/device:TPU:0");
  const auto modules = Names(plane, "XLA Modules");
  ASSERT_EQ(modules.size(), 2u);
  EXPECT_TRUE(modules[0].starts_with("sum_and_product("));
  const auto operations = Names(plane, "XLA Ops");
  ASSERT_GE(operations.size(), 2u);
  EXPECT_TRUE(operations[0].starts_with("fusion.")) << operations[0];
}

TEST_F(ProfilerTest, TwoAtOnceAndOneTwice) {
  Profiler one(client_->plugin()), other(client_->plugin());
  one.Start();
  Run(1);
  other.Start();
  Run(2);
  one.Stop();
  Run(3);
  other.Stop();
  EXPECT_EQ(Names(ParseXSpace(one.Collect()).planes.at(0), "XLA Modules").size(), 2u);
  EXPECT_EQ(Names(ParseXSpace(other.Collect()).planes.at(0), "XLA Modules").size(), 2u);
  one.Start();
  Run(4);
  one.Stop();
  EXPECT_EQ(Names(ParseXSpace(one.Collect()).planes.at(0), "XLA Modules").size(), 1u);
}

TEST_F(ProfilerTest, MisuseIsAnError) {
  Profiler profiler(client_->plugin());
  EXPECT_EQ(ParseXSpace(profiler.Collect()).planes.size(), 0u);
  profiler.Start();
  EXPECT_THROW(profiler.Start(), hlo::Error);
  try {
    profiler.Collect();
    FAIL() << "it has not been stopped";
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kFailedPrecondition);
    EXPECT_NE(std::string(error.what()).find("not been stopped"), std::string::npos);
  }
  profiler.Stop();
}

void ExpectTraceOrNoProfiler(const std::string& path) {
  const Plugin& plugin = Plugin::Load(path);
  if (!Profiler::IsOfferedBy(plugin)) {
    EXPECT_THROW(Profiler{plugin}, hlo::Error);
    return;
  }
  Profiler profiler(plugin);
  profiler.Start();
  profiler.Stop();
  ParseXSpace(profiler.Collect());
}

TEST(ForeignProfilerTest, CollectsOrSaysThatThereIsNone) {
  const Engine engine = ForeignEngine();
  ASSERT_FALSE(engine.path.empty()) << "scripts/install --test installs it";
  ExpectTraceOrNoProfiler(engine.path);
}

// The host's part needs no GPU.
TEST(ForeignProfilerTest, OfGpus) {
  const std::filesystem::path plugin =
      SOURCE_DIRECTORY "/.venv/plugins/jax_plugins/xla_cuda13/xla_cuda_plugin.so";
  ASSERT_TRUE(std::filesystem::exists(plugin)) << "scripts/install --test installs it";
  ExpectTraceOrNoProfiler(plugin);
}

}  // namespace
}  // namespace pjrt
