// What every plugin does alike, through our client: on our plugin and on XLA:CPU.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <thread>

#include "engines.h"
#include "hlo/bytecode.h"
#include "pjrt/client/call.h"

namespace pjrt {
namespace {

using hlo::ElementType;

template <typename F>
hlo::ErrorCode CodeOf(const F& f) {
  try {
    f();
  } catch (const hlo::Error& error) {
    EXPECT_GT(std::strlen(error.what()), 5u);
    return error.code();
  }
  ADD_FAILURE() << "no error";
  return hlo::ErrorCode::kUnknown;
}

class Conformance : public testing::TestWithParam<Engine> {
 protected:
  void SetUp() override {
    client_ = ClientOf(GetParam());
    if (client_ == nullptr) GTEST_SKIP() << "the engine is not installed";
    device_ = client_->addressable_devices()[0];
  }
  std::unique_ptr<Buffer> Upload(const hlo::Literal& literal) {
    return client_->BufferFromLiteral(literal, *device_);
  }
  std::vector<std::unique_ptr<Buffer>> Run(const LoadedExecutable& executable,
                                           std::vector<const Buffer*> arguments,
                                           const ExecuteOptions& options = {}) {
    return executable.Execute(arguments, options).outputs;
  }

  std::shared_ptr<Client> client_;
  Device* device_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Engines, Conformance, testing::Values(OurEngine(), ForeignEngine()),
                         [](const auto& info) { return info.param.name; });

TEST_P(Conformance, Attributes) {
  const Plugin& plugin = client_->plugin();
  EXPECT_EQ(plugin.stablehlo_version().size(), 3u);
  EXPECT_GE(plugin.stablehlo_version(), (std::vector<int64_t>{1, 8, 0}));
  EXPECT_EQ(client_->platform_name(), "cpu");
  EXPECT_FALSE(client_->platform_version().empty());
  EXPECT_EQ(client_->process_index(), 0);
}

TEST_P(Conformance, Devices) {
  ASSERT_EQ(client_->devices().size(), 2u);
  EXPECT_EQ(client_->devices(), client_->addressable_devices());
  for (int id = 0; id < 2; ++id) {
    Device& device = client_->LookupDevice(id);
    EXPECT_EQ(device.id(), id);
    EXPECT_EQ(device.kind(), "cpu");
    EXPECT_FALSE(device.ToString().empty());
    ASSERT_FALSE(device.memories().empty());
    EXPECT_EQ(device.default_memory(), device.memories()[0]);
    EXPECT_EQ(device.default_memory()->kind(), "device");
  }
  EXPECT_EQ(CodeOf([&] { client_->LookupDevice(7); }), hlo::ErrorCode::kNotFound);
  EXPECT_EQ(client_->DefaultDeviceAssignment(2, 1), (std::vector<int64_t>{0, 1}));
}

TEST_P(Conformance, UnknownOptionIsNamed) {
  try {
    Client::Create(client_->plugin(), {{"no_such_option", int64_t{1}}});
    FAIL();
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kInvalidArgument);
    EXPECT_NE(std::string(error.what()).find("no_such_option"), std::string::npos);
  }
}

TEST_P(Conformance, RoundTripOfEveryType) {
  for (ElementType type :
       {ElementType::kPred, ElementType::kS8, ElementType::kS16, ElementType::kS32,
        ElementType::kS64, ElementType::kU8, ElementType::kU16, ElementType::kU32,
        ElementType::kU64, ElementType::kF16, ElementType::kBF16, ElementType::kF32,
        ElementType::kF64, ElementType::kC64, ElementType::kC128}) {
    for (const hlo::Dimensions& dimensions :
         {hlo::Dimensions{}, hlo::Dimensions{3}, hlo::Dimensions{2, 3, 5}, hlo::Dimensions{0, 4},
          hlo::Dimensions{1000, 7}}) {
      hlo::Literal literal(hlo::Shape(type, dimensions));
      auto* bytes = reinterpret_cast<unsigned char*>(literal.mutable_bytes());
      for (size_t i = 0; i < literal.byte_size(); ++i) {
        bytes[i] = type == ElementType::kPred ? i % 3 == 0 : i * 7 % 120;
      }
      auto buffer = Upload(literal);
      EXPECT_EQ(buffer->shape(), literal.shape());
      EXPECT_EQ(buffer->ToLiteral(), literal) << literal.shape().ToString();
    }
  }
}

TEST_P(Conformance, StridedUpload) {
  const std::vector<int32_t> columns = {0, 10, 1, 11, 2, 12};  // [2, 3] in column order
  const std::vector<int64_t> strides = {4, 8};
  HostBufferOptions options;
  options.byte_strides = strides;
  auto buffer = client_->BufferFromHost(columns.data(), hlo::Shape(ElementType::kS32, {2, 3}),
                                        *device_, options);
  EXPECT_EQ(buffer->ToLiteral(), hlo::Literal::FromVector<int32_t>({0, 1, 2, 10, 11, 12}, {2, 3}));
}

// Engines may hold a buffer in columns where they are asked to.
TEST_P(Conformance, OrderOnTheDevice) {
  for (const hlo::Dimensions& dimensions : {hlo::Dimensions{}, {2, 3}, {3, 1}, {0, 2}}) {
    EXPECT_TRUE(Upload(hlo::Literal(hlo::Shape(ElementType::kS32, dimensions)))->IsRowMajor());
  }
  const hlo::Literal literal = hlo::Literal::FromVector<int32_t>({0, 1, 2, 10, 11, 12}, {2, 3});
  const std::vector<int64_t> columns = {0, 1};
  Arguments<PJRT_Buffer_MemoryLayout> layout;
  layout->type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout->tiled.struct_size = PJRT_STRUCT_SIZE(PJRT_Buffer_MemoryLayout_Tiled, num_tiles);
  layout->tiled.minor_to_major = columns.data();
  layout->tiled.minor_to_major_size = columns.size();
  Arguments<PJRT_Client_BufferFromHostBuffer_Args> args;
  args->client = client_->handle();
  args->data = literal.bytes();
  args->type = PJRT_Buffer_Type_S32;
  args->dims = literal.shape().dimensions().data();
  args->num_dims = 2;
  args->host_buffer_semantics = PJRT_HostBufferSemantics_kImmutableOnlyDuringCall;
  args->device = device_->handle();
  args->device_layout = layout.get();
  try {
    PJRT_INVOKE(client_->plugin(), Client_BufferFromHostBuffer, args);
  } catch (const hlo::Error&) {
    EXPECT_NE(GetParam().name, "foreign");
    return;
  }
  const Event done(client_->plugin(), args->done_with_host_buffer);
  const Buffer buffer(client_, OwnedBuffer(client_->plugin(), args->buffer));
  EXPECT_FALSE(buffer.IsRowMajor());
  EXPECT_EQ(buffer.ToLiteral(), literal);
}

TEST_P(Conformance, HostArrayIsReleased) {
  for (HostBufferSemantics semantics : {HostBufferSemantics::kImmutableOnlyDuringCall,
                                        HostBufferSemantics::kImmutableUntilTransferCompletes,
                                        HostBufferSemantics::kImmutableZeroCopy}) {
    std::atomic<int> released = 0;
    std::vector<float> data(100000, 3.0f);
    {
      HostBufferOptions options;
      options.semantics = semantics;
      options.done = [&] { ++released; };
      auto buffer = client_->BufferFromHost(data.data(), hlo::Shape(ElementType::kF32, {100000}),
                                            *device_, options);
      buffer->Await();
      EXPECT_EQ(buffer->ToLiteral().AsDouble(99999), 3.0);
    }
    for (int i = 0; i < 2000 && released == 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(released, 1);
  }
}

TEST_P(Conformance, Execute) {
  auto executable = client_->Compile(*SumAndProduct());
  EXPECT_EQ(executable->output_shapes(), (std::vector<hlo::Shape>{kVector, kVector}));
  EXPECT_EQ(executable->addressable_devices(), std::vector<Device*>{device_});
  auto x = Upload(Vector(1, 2, 3, 4)), y = Upload(Vector(5, 6, 7, 8));
  const Buffer* arguments[] = {x.get(), y.get()};
  ExecuteResult result = executable->Execute(arguments);
  EXPECT_EQ(result.outputs[0]->ToLiteral(), Vector(6, 8, 10, 12));
  EXPECT_EQ(result.outputs[1]->ToLiteral(), Vector(5, 12, 21, 32));
  result.done.Await();
  EXPECT_TRUE(result.done.IsReady());
  EXPECT_FALSE(result.done.error().has_value());
  EXPECT_EQ(&result.outputs[0]->device(), device_);
  EXPECT_EQ(&result.outputs[0]->memory(), device_->default_memory());
  EXPECT_FALSE(x->IsDeleted());
}

TEST_P(Conformance, ChainOfExecutions) {
  auto executable = client_->Compile(*SumAndProduct());
  auto x = Upload(Vector(1, 1, 1, 1)), one = Upload(Vector(1, 1, 1, 1));
  for (int i = 0; i < 200; ++i) {
    x = std::move(Run(*executable, {x.get(), one.get()})[0]);
  }
  EXPECT_EQ(x->ToLiteral(), Vector(201, 201, 201, 201));
}

TEST_P(Conformance, ResultThatIsAnArgumentOrConstant) {
  auto executable = client_->Compile(*MakeModule("identity", [](hlo::Builder& b) {
    hlo::Value x = b.Parameter(kVector);
    return std::vector<hlo::Value>{x, x, b.Constant(Vector(9, 8, 7, 6))};
  }));
  auto x = Upload(Vector(1, 2, 3, 4));
  auto outputs = Run(*executable, {x.get()});
  x = nullptr;
  EXPECT_EQ(outputs[0]->ToLiteral(), Vector(1, 2, 3, 4));
  outputs[0] = nullptr;
  EXPECT_EQ(outputs[1]->ToLiteral(), Vector(1, 2, 3, 4));
  EXPECT_EQ(outputs[2]->ToLiteral(), Vector(9, 8, 7, 6));
}

TEST_P(Conformance, WrongArguments) {
  auto executable = client_->Compile(*SumAndProduct());
  auto x = Upload(Vector(1, 2, 3, 4));
  EXPECT_EQ(CodeOf([&] { Run(*executable, {x.get()}); }), hlo::ErrorCode::kInvalidArgument);
  auto other = Upload(hlo::Literal::FromVector<float>({1, 2, 3}));
  EXPECT_EQ(CodeOf([&] {
              for (auto& output : Run(*executable, {x.get(), other.get()})) output->Await();
            }),
            hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(x->ToLiteral(), Vector(1, 2, 3, 4));
}

TEST_P(Conformance, Donation) {
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  auto y = Upload(Vector(5, 6, 7, 8));
  auto x = Upload(Vector(1, 2, 3, 4));
  const int64_t keep[] = {0};
  ExecuteOptions options;
  options.non_donatable_inputs = keep;
  EXPECT_EQ(Run(*executable, {x.get(), y.get()}, options)[0]->ToLiteral(), Vector(6, 8, 10, 12));
  EXPECT_FALSE(x->IsDeleted());
  EXPECT_EQ(x->ToLiteral(), Vector(1, 2, 3, 4));

  auto outputs = Run(*executable, {x.get(), y.get()});
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_FALSE(y->IsDeleted());
  EXPECT_EQ(outputs[0]->ToLiteral(), Vector(6, 8, 10, 12));
  EXPECT_EQ(outputs[1]->ToLiteral(), Vector(5, 12, 21, 32));
  EXPECT_EQ(CodeOf([&] { x->ToLiteral(); }), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { x->Await(); }), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(CodeOf([&] { Run(*executable, {x.get(), y.get()}); }),
            hlo::ErrorCode::kInvalidArgument);
}

TEST_P(Conformance, DonatedTwice) {
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  auto x = Upload(Vector(1, 2, 3, 4));
  EXPECT_EQ(CodeOf([&] { Run(*executable, {x.get(), x.get()}); }),
            hlo::ErrorCode::kInvalidArgument);
}

TEST_P(Conformance, CopyBetweenDevices) {
  auto x = Upload(Vector(1, 2, 3, 4));
  Device& other = client_->LookupDevice(1);
  auto copy = x->CopyToDevice(other);
  EXPECT_EQ(&copy->device(), &other);
  EXPECT_EQ(copy->shape(), x->shape());
  x->Delete();
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_EQ(copy->ToLiteral(), Vector(1, 2, 3, 4));
  EXPECT_EQ(copy->on_device_size_in_bytes(), 16u);
  auto back = copy->CopyToMemory(*device_->default_memory());
  EXPECT_EQ(&back->device(), device_);
  EXPECT_EQ(back->ToLiteral(), Vector(1, 2, 3, 4));
}

TEST_P(Conformance, DonationLeavesCopiesAlone) {
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  auto x = Upload(Vector(1, 2, 3, 4)), y = Upload(Vector(5, 6, 7, 8));
  auto copy = x->CopyToDevice(client_->LookupDevice(1));
  auto outputs = Run(*executable, {x.get(), y.get()});
  EXPECT_EQ(outputs[0]->ToLiteral(), Vector(6, 8, 10, 12));
  EXPECT_EQ(copy->ToLiteral(), Vector(1, 2, 3, 4));
}

TEST_P(Conformance, SecondDevice) {
  CompileOptions options;
  options.device_assignment = {1};
  auto executable = client_->Compile(*SumAndProduct(), options);
  Device& other = client_->LookupDevice(1);
  EXPECT_EQ(executable->addressable_devices(), std::vector<Device*>{&other});
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), other);
  auto outputs = Run(*executable, {x.get(), x.get()});
  EXPECT_EQ(&outputs[0]->device(), &other);
  EXPECT_EQ(outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

TEST_P(Conformance, PortableExecutable) {
  CompileOptions options;
  options.portable = true;
  auto executable = client_->Compile(*SumAndProduct(), options);
  for (Device* device : client_->devices()) {
    auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *device);
    ExecuteOptions execute;
    execute.device = device;
    auto outputs = Run(*executable, {x.get(), x.get()}, execute);
    EXPECT_EQ(&outputs[0]->device(), device);
    EXPECT_EQ(outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
  }
}

TEST_P(Conformance, Replicas) {
  CompileOptions options;
  options.num_replicas = 2;
  auto executable = client_->Compile(*SumAndProduct(), options);
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), client_->LookupDevice(0));
  auto y = client_->BufferFromLiteral(Vector(5, 6, 7, 8), client_->LookupDevice(1));
  auto results = executable->ExecuteSharded({{x.get(), x.get()}, {y.get(), y.get()}});
  EXPECT_EQ(results[0].outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
  EXPECT_EQ(results[1].outputs[0]->ToLiteral(), Vector(10, 12, 14, 16));
  EXPECT_EQ(executable->executable().num_replicas(), 2);
}

TEST_P(Conformance, Introspection) {
  auto executable = client_->Compile(*SumAndProduct());
  const Executable& program = executable->executable();
  EXPECT_EQ(program.num_replicas(), 1);
  EXPECT_EQ(program.num_partitions(), 1);
  EXPECT_EQ(program.output_memory_kinds(), (std::vector<std::string>{"device", "device"}));
  EXPECT_FALSE(program.name().empty());
  EXPECT_FALSE(program.fingerprint().empty());
  CompiledMemoryStats stats = program.memory_stats();
  EXPECT_EQ(stats.arguments, 32);
  EXPECT_GE(stats.outputs, 32);
  OptimizedProgram optimized = program.optimized_program();
  EXPECT_FALSE(optimized.code.empty());
  EXPECT_FALSE(optimized.format.empty());
}

TEST_P(Conformance, SerializedExecutable) {
  std::string bytes;
  {
    auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
    bytes = executable->executable().Serialize();
  }
  auto executable = client_->DeserializeAndLoad(bytes);
  auto x = Upload(Vector(1, 2, 3, 4)), y = Upload(Vector(5, 6, 7, 8));
  EXPECT_EQ(Run(*executable, {x.get(), y.get()})[0]->ToLiteral(), Vector(6, 8, 10, 12));
  EXPECT_TRUE(x->IsDeleted());
  CodeOf([&] { client_->DeserializeAndLoad("garbage"); });
  CodeOf([&] { client_->DeserializeAndLoad(""); });
  if (GetParam().name == "foreign") return;  // it believes what it reads
  const std::string tupled_arguments("\x10\x01");
  CodeOf([&] { client_->DeserializeAndLoad(bytes, tupled_arguments); });
  for (size_t part = 1; part < 20; ++part) {
    CodeOf([&] { client_->DeserializeAndLoad(bytes.substr(0, bytes.size() * part / 20)); });
    std::string flipped = bytes;
    flipped[bytes.size() * part / 20] ^= 4;
    CodeOf([&] { client_->DeserializeAndLoad(flipped); });
  }
}

TEST_P(Conformance, ProgramThatIsNone) {
  CodeOf([&] { client_->Compile("this is no program", "mlir"); });
  CodeOf([&] { client_->Compile("x", "no such format"); });
  std::string cut = hlo::WriteBytecode(*SumAndProduct());
  cut.resize(cut.size() / 2);
  CodeOf([&] { client_->Compile(cut, "mlir"); });
}

TEST_P(Conformance, DeletedExecutable) {
  auto executable = client_->Compile(*SumAndProduct());
  EXPECT_FALSE(executable->IsDeleted());
  executable->Delete();
  EXPECT_TRUE(executable->IsDeleted());
  EXPECT_EQ(executable->executable().output_shapes().size(), 2u);
}

TEST_P(Conformance, Callbacks) {
  auto x = Upload(Vector(1, 2, 3, 4));
  x->Await();
  std::atomic<int> calls = 0;
  x->ReadyEvent().OnReady([&](const hlo::Error* error) {
    EXPECT_EQ(error, nullptr);
    ++calls;
  });
  for (int i = 0; i < 2000 && calls == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(calls, 1);
}

TEST_P(Conformance, ExternalReferenceOutlivesDelete) {
  auto x = Upload(Vector(1, 2, 3, 4));
  x->Await();
  if (!x->IsOnCpu()) {  // there is no address to refer to
    EXPECT_EQ(CodeOf([&] { Buffer::ExternalReference reference(*x); }),
              hlo::ErrorCode::kUnimplemented);
    return;
  }
  Buffer::ExternalReference reference(*x);
  x->Delete();
  auto y = Upload(Vector(9, 9, 9, 9));  // would reuse the memory
  EXPECT_EQ(static_cast<const float*>(reference.data())[2], 3.0f);
}

TEST_P(Conformance, RawCopy) {
  auto x = Upload(Vector(1, 2, 3, 4));
  float two[2] = {};
  x->CopyRawToHost(two, 4, 8).Await();
  EXPECT_EQ(two[0], 2.0f);
  EXPECT_EQ(two[1], 3.0f);
  CodeOf([&] { x->CopyRawToHost(two, 12, 8).Await(); });
}

TEST_P(Conformance, Threads) {
  auto executable = client_->Compile(*SumAndProduct());
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        const float v = static_cast<float>(t * 100 + i);
        auto x = client_->BufferFromLiteral(Vector(v, v, v, v), *device_);
        auto outputs = Run(*executable, {x.get(), x.get()});
        if (outputs[0]->ToLiteral().AsDouble(3) != 2.0 * v) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(Conformance, Topology) {
  auto topology = client_->topology();
  EXPECT_EQ(topology->platform_name(), "cpu");
  EXPECT_EQ(topology->device_kinds(), (std::vector<std::string>{"cpu", "cpu"}));
}

}  // namespace
}  // namespace pjrt
