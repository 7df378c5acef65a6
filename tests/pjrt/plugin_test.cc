// Our plugin through the bare C interface: what a C++ client does not reach or would not do.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <thread>

#include "another_build.h"
#include "engines.h"
#include "hlo/bytecode.h"
#include "hlo/text_writer.h"
#include "pjrt/c_api.h"

namespace pjrt {
namespace {

const PJRT_Api* Api() {
  static const PJRT_Api* api = [] {
    const Engine engine = OurEngine();
    return engine.path.empty() ? nullptr : &Plugin::Load(engine.path).api();
  }();
  return api;
}

template <typename Args>
Args New() {
  Args args{};
  args.struct_size = sizeof(Args);
  return args;
}

// Frees the error and returns its code; 0 for none.
int CodeOf(PJRT_Error* error) {
  if (error == nullptr) return 0;
  auto code = New<PJRT_Error_GetCode_Args>();
  code.error = error;
  EXPECT_EQ(Api()->PJRT_Error_GetCode(&code), nullptr);
  auto message = New<PJRT_Error_Message_Args>();
  message.error = error;
  Api()->PJRT_Error_Message(&message);
  EXPECT_GT(message.message_size, 5u);
  auto destroy = New<PJRT_Error_Destroy_Args>();
  destroy.error = error;
  Api()->PJRT_Error_Destroy(&destroy);
  return code.code;
}

#define CALL(name, args) CodeOf(Api()->PJRT_##name(&args))
#define OK(name, args) ASSERT_EQ(CALL(name, args), 0)

class PluginTest : public testing::Test {
 protected:
  void SetUp() override {
    client_ = ClientOf(OurEngine());
    ASSERT_NE(client_, nullptr) << "the plugin is not built";
    memory_ = client_->devices()[0]->default_memory()->handle();
  }
  std::unique_ptr<Buffer> Wrap(PJRT_Buffer* buffer) {
    return std::make_unique<Buffer>(client_, buffer);
  }
  // A buffer whose value comes from FulfillAliasBuffer.
  std::unique_ptr<Buffer> Promise(PJRT_FulfillAliasBufferCallback** fulfill) {
    auto args = New<PJRT_Client_CreateAliasBuffer_Args>();
    const int64_t dims[] = {4};
    args.client = client_->handle();
    args.memory = memory_;
    args.shape_dims = dims;
    args.shape_num_dims = 1;
    args.shape_element_type = PJRT_Buffer_Type_F32;
    EXPECT_EQ(CALL(Client_CreateAliasBuffer, args), 0);
    *fulfill = args.fulfill_alias_buffer_cb;
    return Wrap(args.alias_buffer);
  }
  void Fulfill(PJRT_FulfillAliasBufferCallback* fulfill, const Buffer* value,
               PJRT_Error_Code code = PJRT_Error_Code_OK, const char* message = "") {
    auto args = New<PJRT_Client_FulfillAliasBuffer_Args>();
    args.client = client_->handle();
    args.buffer = value != nullptr ? value->handle() : nullptr;
    args.status_code = code;
    args.error_message = message;
    args.error_message_size = std::strlen(message);
    args.fulfill_alias_buffer_cb = fulfill;
    EXPECT_EQ(CALL(Client_FulfillAliasBuffer, args), 0);
  }

  std::shared_ptr<Client> client_;
  PJRT_Memory* memory_ = nullptr;
};

TEST_F(PluginTest, EverySlotIsThere) {
  const PJRT_Api* api = Api();
  EXPECT_EQ(api->pjrt_api_version.major_version, 0);
  EXPECT_EQ(api->pjrt_api_version.minor_version, 114);
  EXPECT_EQ(api->struct_size, sizeof(PJRT_Api));
  auto slots = reinterpret_cast<void* const*>(reinterpret_cast<const char*>(api) + 40);
  for (int i = 0; i < 138; ++i) EXPECT_NE(slots[i], nullptr) << i;
  for (int i = 138; i < 160; ++i) EXPECT_EQ(slots[i], nullptr) << i;
}

// No slot crashes on a struct of zeros, a null struct, or one that is too short for its header.
TEST_F(PluginTest, EmptyArguments){
#define CHECK_EMPTY(name)                                                             \
  {                                                                                   \
    PJRT_##name##_Args args{};                                                        \
    EXPECT_EQ(CALL(name, args), PJRT_Error_Code_INVALID_ARGUMENT) << #name;           \
    EXPECT_EQ(CodeOf(Api()->PJRT_##name(nullptr)), PJRT_Error_Code_INVALID_ARGUMENT); \
    args.struct_size = sizeof args;                                                   \
    if (std::string_view(#name) != "Client_Create" &&                                 \
        std::string_view(#name) != "TopologyDescription_Create" &&                    \
        std::string_view(#name) != "Event_Create" &&                                  \
        std::string_view(#name) != "ExecuteContext_Create") {                         \
      CodeOf(Api()->PJRT_##name(&args));                                              \
    }                                                                                 \
  }
    PJRT_API_FUNCTIONS(CHECK_EMPTY)
#undef CHECK_EMPTY
}

// A client that was built before the last fields were added: they read as zero, and nothing is
// written there.
TEST_F(PluginTest, OlderClient) {
  auto buffer = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  struct {
    PJRT_Buffer_Dimensions_Args args;
    char behind[32];
  } padded{};
  std::memset(&padded, 0x5a, sizeof padded);
  padded.args.struct_size = offsetof(PJRT_Buffer_Dimensions_Args, num_dims);
  padded.args.extension_start = nullptr;
  padded.args.buffer = buffer->handle();
  OK(Buffer_Dimensions, padded.args);
  EXPECT_EQ(padded.args.dims[0], 4);
  EXPECT_EQ(padded.args.num_dims, 0x5a5a5a5a5a5a5a5a);

  // Before the "try get" callback of the key-value store.
  auto create = New<PJRT_Client_Create_Args>();
  create.struct_size = offsetof(PJRT_Client_Create_Args, kv_try_get_callback);
  OK(Client_Create, create);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = create.client;
  OK(Client_Destroy, destroy);

  // The first options of executions ended after `launch_id`.
  auto executable = client_->Compile(*SumAndProduct());
  auto loaded = New<PJRT_Client_Compile_Args>();
  const std::string code = hlo::WriteBytecode(*SumAndProduct(true));
  auto program = New<PJRT_Program>();
  program.code = const_cast<char*>(code.data());
  program.code_size = code.size();
  program.format = "mlir";
  program.format_size = 4;
  loaded.client = client_->handle();
  loaded.program = &program;
  loaded.compile_options = "";
  OK(Client_Compile, loaded);
  PJRT_ExecuteOptions options;
  std::memset(static_cast<void*>(&options), 0x5a, sizeof options);
  options.struct_size = offsetof(PJRT_ExecuteOptions, non_donatable_input_indices);
  options.extension_start = nullptr;
  options.num_send_ops = options.num_recv_ops = 0;
  PJRT_Buffer* arguments[] = {buffer->handle(), buffer->handle()};
  PJRT_Buffer* const* argument_lists[] = {arguments};
  PJRT_Buffer* outputs[2];
  PJRT_Buffer** output_lists[] = {outputs};
  auto execute = New<PJRT_LoadedExecutable_Execute_Args>();
  execute.executable = loaded.executable;
  execute.options = &options;
  execute.argument_lists = argument_lists;
  execute.num_devices = 1;
  execute.num_args = 2;
  execute.output_lists = output_lists;
  EXPECT_EQ(CALL(LoadedExecutable_Execute, execute), PJRT_Error_Code_INVALID_ARGUMENT);  // twice
  auto other = client_->BufferFromLiteral(Vector(1, 1, 1, 1), *client_->devices()[0]);
  arguments[1] = other->handle();
  OK(LoadedExecutable_Execute, execute);
  EXPECT_EQ(Wrap(outputs[0])->ToLiteral(), Vector(2, 3, 4, 5));
  EXPECT_EQ(Wrap(outputs[1])->ToLiteral(), Vector(1, 2, 3, 4));
  auto drop = New<PJRT_LoadedExecutable_Destroy_Args>();
  drop.executable = loaded.executable;
  OK(LoadedExecutable_Destroy, drop);
}

TEST_F(PluginTest, NewerClient) {
  struct {
    PJRT_Client_PlatformName_Args args;
    void* newer[8];
  } padded{};
  padded.args.struct_size = sizeof padded;
  padded.args.client = client_->handle();
  OK(Client_PlatformName, padded.args);
  EXPECT_EQ(std::string(padded.args.platform_name, padded.args.platform_name_size), "cpu");
}

TEST_F(PluginTest, BadOptions) {
  auto code = [&](NamedValues options) {
    try {
      Client::Create(client_->plugin(), options);
    } catch (const hlo::Error& error) {
      return error.code();
    }
    return hlo::ErrorCode{};
  };
  EXPECT_EQ(code({{"cpu_device_count", int64_t{0}}}), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"cpu_device_count", "four"}}), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"num_nodes", int64_t{2}}}), hlo::ErrorCode::kInvalidArgument);  // no store
  EXPECT_EQ(code({{"node_id", int64_t{1}}}), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"job_secret", int64_t{1}}}), hlo::ErrorCode::kInvalidArgument);
  EXPECT_EQ(code({{"job_secret", std::string("\0\xff", 2)}}), hlo::ErrorCode{});
  EXPECT_EQ(code({{"num_nodes", int64_t{1}}, {"asynchronous", false}}), hlo::ErrorCode{});
}

TEST_F(PluginTest, SynchronousClient) {
  auto client = Client::Create(client_->plugin(), {{"asynchronous", false}});
  auto executable = client->Compile(*SumAndProduct());
  auto x = client->BufferFromLiteral(Vector(1, 2, 3, 4), *client->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  ExecuteResult result = executable->Execute(arguments);
  EXPECT_TRUE(result.done.IsReady());
  EXPECT_EQ(result.outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

TEST_F(PluginTest, ReadsStablehloText) {
  auto executable = client_->Compile(hlo::WriteStablehloText(*SumAndProduct()), "mlir");
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  EXPECT_EQ(executable->Execute(arguments).outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
  try {
    client_->Compile("func.func @main() {\n  return %0 : tensor<f32>\n}", "mlir");
    ADD_FAILURE() << "compiled";
  } catch (const hlo::Error& error) {
    EXPECT_NE(std::string(error.what()).find("line 2, column 10: %0 is not defined"),
              std::string::npos)
        << error.what();
  }
}

TEST_F(PluginTest, BuffersOutliveTheirClientHandle) {
  auto create = New<PJRT_Client_Create_Args>();
  OK(Client_Create, create);
  auto devices = New<PJRT_Client_Devices_Args>();
  devices.client = create.client;
  OK(Client_Devices, devices);
  const float data[] = {1, 2, 3};
  const int64_t dims[] = {3};
  auto upload = New<PJRT_Client_BufferFromHostBuffer_Args>();
  upload.client = create.client;
  upload.data = data;
  upload.type = PJRT_Buffer_Type_F32;
  upload.dims = dims;
  upload.num_dims = 1;
  upload.device = devices.devices[0];
  OK(Client_BufferFromHostBuffer, upload);
  auto event = New<PJRT_Event_Destroy_Args>();
  event.event = upload.done_with_host_buffer;
  OK(Event_Destroy, event);
  auto destroy = New<PJRT_Client_Destroy_Args>();
  destroy.client = create.client;
  OK(Client_Destroy, destroy);
  auto pointer = New<PJRT_Buffer_UnsafePointer_Args>();
  pointer.buffer = upload.buffer;
  OK(Buffer_UnsafePointer, pointer);
  EXPECT_EQ(reinterpret_cast<const float*>(pointer.buffer_pointer)[2], 3.0f);
  auto drop = New<PJRT_Buffer_Destroy_Args>();
  drop.buffer = upload.buffer;
  OK(Buffer_Destroy, drop);
}

TEST_F(PluginTest, ExecutionWaitsForItsArguments) {
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  auto promised = Promise(&fulfill);
  auto executable = client_->Compile(*SumAndProduct());
  const Buffer* first[] = {promised.get(), promised.get()};
  ExecuteResult a = executable->Execute(first);
  const Buffer* second[] = {a.outputs[0].get(), promised.get()};
  ExecuteResult b = executable->Execute(second);
  float host[4] = {};
  Event copied = b.outputs[0]->ToHostAsync(host, sizeof host);
  EXPECT_FALSE(promised->ReadyEvent().IsReady());
  EXPECT_FALSE(a.done.IsReady());
  EXPECT_FALSE(copied.IsReady());
  auto value = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  Fulfill(fulfill, value.get());
  copied.Await();
  EXPECT_EQ(host[3], 12.0f);
  b.done.Await();
}

// An error goes from argument to results to their users, with its code and text.
TEST_F(PluginTest, ErrorsPropagate) {
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  auto promised = Promise(&fulfill);
  auto executable = client_->Compile(*SumAndProduct());
  const Buffer* first[] = {promised.get(), promised.get()};
  ExecuteResult a = executable->Execute(first);
  const Buffer* second[] = {a.outputs[0].get(), a.outputs[1].get()};
  ExecuteResult b = executable->Execute(second);
  auto copy = b.outputs[0]->CopyToDevice(*client_->devices()[1]);
  std::atomic<bool> called = false;
  copy->ReadyEvent().OnReady([&](const hlo::Error* error) {
    ASSERT_NE(error, nullptr);
    EXPECT_EQ(error->code(), hlo::ErrorCode::kDataLoss);
    called = true;
  });
  Fulfill(fulfill, nullptr, PJRT_Error_Code_DATA_LOSS, "the data are gone");
  float host[4];
  auto expect_lost = [](auto&& f) {
    try {
      f();
      ADD_FAILURE() << "no error";
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kDataLoss);
      EXPECT_STREQ(error.what(), "the data are gone");
    }
  };
  expect_lost([&] { a.done.Await(); });
  expect_lost([&] { b.outputs[1]->Await(); });
  expect_lost([&] { copy->ToHost(host, sizeof host); });
  expect_lost([&] { copy->UnsafePointer(); });
  EXPECT_TRUE(b.done.IsReady());
  EXPECT_TRUE(b.done.error().has_value());
  EXPECT_TRUE(called);
  // The device works on.
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* third[] = {x.get(), x.get()};
  EXPECT_EQ(executable->Execute(third).outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

TEST_F(PluginTest, ErrorBufferWithPayload) {
  auto args = New<PJRT_Client_CreateErrorBuffer_Args>();
  PJRT_NamedValue payload = New<PJRT_NamedValue>();
  payload.name = "where";
  payload.name_size = 5;
  payload.type = PJRT_NamedValue_kString;
  payload.string_value = "line 7";
  payload.value_size = 6;
  args.client = client_->handle();
  args.error_code = PJRT_Error_Code_ABORTED;
  args.error_message = "stopped here";
  args.error_message_size = 12;
  args.shape_element_type = PJRT_Buffer_Type_S32;
  args.memory = memory_;
  args.payload = &payload;
  args.num_payload = 1;
  OK(Client_CreateErrorBuffer, args);
  auto buffer = Wrap(args.buffer);
  auto ready = New<PJRT_Buffer_ReadyEvent_Args>();
  ready.buffer = buffer->handle();
  OK(Buffer_ReadyEvent, ready);
  auto await = New<PJRT_Event_Await_Args>();
  await.event = ready.event;
  PJRT_Error* error = Api()->PJRT_Event_Await(&await);
  ASSERT_NE(error, nullptr);
  const PJRT_Error_FunctionTable* functions = error->vtable;
  EXPECT_EQ(functions->get_code(error), PJRT_Error_Code_ABORTED);
  const char* message;
  size_t size;
  functions->message(error, &message, &size);
  EXPECT_EQ(std::string(message, size), "stopped here");
  std::string seen;
  auto visit = New<PJRT_Error_ForEachPayload_Args>();
  visit.error = error;
  visit.user_arg = &seen;
  visit.visitor = [](const char* key, size_t key_size, const char* value, size_t value_size,
                     void* user_arg) {
    *static_cast<std::string*>(user_arg) +=
        std::string(key, key_size) + "=" + std::string(value, value_size);
  };
  OK(Error_ForEachPayload, visit);
  EXPECT_EQ(seen, "where=line 7");
  functions->destroy(error);
  auto destroy = New<PJRT_Event_Destroy_Args>();
  destroy.event = ready.event;
  OK(Event_Destroy, destroy);
}

TEST_F(PluginTest, MemoryUserData) {
  const PJRT_Memory_FunctionTable* functions = memory_->vtable;
  ASSERT_NE(functions, nullptr);
  static int destroyed;
  destroyed = 0;
  int key, value;
  EXPECT_EQ(functions->get_user_data(memory_, &key), nullptr);
  functions->set_user_data(memory_, &key, &value, [](void*) { ++destroyed; });
  EXPECT_EQ(functions->get_user_data(memory_, &key), &value);
  functions->set_user_data(memory_, &key, nullptr, nullptr);
  EXPECT_EQ(destroyed, 1);
  EXPECT_EQ(functions->get_user_data(memory_, &key), nullptr);
}

TEST_F(PluginTest, EventsOfTheFramework) {
  auto create = New<PJRT_Event_Create_Args>();
  OK(Event_Create, create);
  {
    Event event(client_->plugin(), create.event);
    EXPECT_FALSE(event.IsReady());
    auto early = New<PJRT_Event_Error_Args>();
    early.event = create.event;
    EXPECT_EQ(CALL(Event_Error, early), PJRT_Error_Code_FAILED_PRECONDITION);
    std::thread setter([&] {
      auto set = New<PJRT_Event_Set_Args>();
      set.event = create.event;
      set.error_code = PJRT_Error_Code_CANCELLED;
      set.error_message = "cancelled";
      set.error_message_size = 9;
      EXPECT_EQ(CALL(Event_Set, set), 0);
    });
    EXPECT_THROW(event.Await(), hlo::Error);
    setter.join();
    auto again = New<PJRT_Event_Set_Args>();
    again.event = create.event;
    EXPECT_EQ(CALL(Event_Set, again), PJRT_Error_Code_FAILED_PRECONDITION);
  }
}

// What a callback of the framework's throws is no reason for others not to hear, nor an error of
// who sets the event or who asks.
TEST_F(PluginTest, CallbacksThatThrow) {
  auto create = New<PJRT_Event_Create_Args>();
  OK(Event_Create, create);
  const Event event(client_->plugin(), create.event);
  int called = 0;
  const auto ask = [&] {
    auto args = New<PJRT_Event_OnReady_Args>();
    args.event = create.event;
    args.user_arg = &called;
    args.callback = [](PJRT_Error* error, void* count) {
      CodeOf(error);
      ++*static_cast<int*>(count);
      throw std::bad_alloc();
    };
    return CALL(Event_OnReady, args);
  };
  EXPECT_EQ(ask(), 0);
  EXPECT_EQ(ask(), 0);
  auto set = New<PJRT_Event_Set_Args>();
  set.event = create.event;
  EXPECT_EQ(CALL(Event_Set, set), 0);
  EXPECT_EQ(called, 2);
  EXPECT_EQ(ask(), 0);
  EXPECT_EQ(called, 3);
}

// They may be taken for programs' names. The eight bytes at the end make the fast hashes of
// hlo/hash.h forget what came before them.
TEST_F(PluginTest, DifferentProgramsHaveDifferentFingerprints) {
  const auto fingerprint = [&](const std::string& operation) {
    std::string code = "func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n  %0 = stablehlo." +
                       operation + " %a : tensor<4xf32>\n  return %0 : tensor<4xf32>\n}\n// ";
    code.resize((code.size() + 7) / 8 * 8, ' ');
    code += "\xb9\xe5\xe4\x1c\x6d\x47\x58\xbf";
    return client_->CompileWith(code, "mlir", "")->executable().fingerprint();
  };
  EXPECT_EQ(fingerprint("cosine"), fingerprint("cosine"));
  EXPECT_NE(fingerprint("cosine"), fingerprint("negate"));
}

TEST_F(PluginTest, PiecewiseTransfer) {
  const int64_t dims[] = {4};
  PJRT_ShapeSpec specs[2] = {New<PJRT_ShapeSpec>(), New<PJRT_ShapeSpec>()};
  for (PJRT_ShapeSpec& spec : specs) {
    spec.dims = dims;
    spec.num_dims = 1;
    spec.element_type = PJRT_Buffer_Type_F32;
  }
  auto create = New<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client_->handle();
  create.shape_specs = specs;
  create.num_shape_specs = 2;
  create.memory = memory_;
  OK(Client_CreateBuffersForAsyncHostToDevice, create);
  std::unique_ptr<Buffer> buffers[2];
  for (int i = 0; i < 2; ++i) {
    auto retrieve = New<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
    retrieve.transfer_manager = create.transfer_manager;
    retrieve.buffer_index = i;
    OK(AsyncHostToDeviceTransferManager_RetrieveBuffer, retrieve);
    buffers[i] = Wrap(retrieve.buffer_out);
  }
  const float data[] = {1, 2, 3, 4};
  auto transfer = New<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  for (int half = 0; half < 2; ++half) {
    EXPECT_FALSE(buffers[0]->ReadyEvent().IsReady());
    transfer.data = data + 2 * half;
    transfer.offset = 8 * half;
    transfer.transfer_size = 8;
    transfer.is_last_transfer = half == 1;
    OK(AsyncHostToDeviceTransferManager_TransferData, transfer);
    Event(client_->plugin(), transfer.done_with_h2d_transfer).Await();
  }
  EXPECT_EQ(buffers[0]->ToLiteral(), Vector(1, 2, 3, 4));
  transfer.offset = 12;
  EXPECT_EQ(CALL(AsyncHostToDeviceTransferManager_TransferData, transfer),
            PJRT_Error_Code_FAILED_PRECONDITION);
  transfer.buffer_index = 1;
  EXPECT_EQ(CALL(AsyncHostToDeviceTransferManager_TransferData, transfer),
            PJRT_Error_Code_OUT_OF_RANGE);
  auto destroy = New<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_Destroy, destroy);
  EXPECT_THROW(buffers[1]->Await(), hlo::Error);
}

TEST_F(PluginTest, WhatIsCalledBackMayUseTheTransferItself) {
  const int64_t dims[] = {4};
  auto spec = New<PJRT_ShapeSpec>();
  spec.dims = dims;
  spec.num_dims = 1;
  spec.element_type = PJRT_Buffer_Type_F32;
  auto create = New<PJRT_Client_CreateBuffersForAsyncHostToDevice_Args>();
  create.client = client_->handle();
  create.shape_specs = &spec;
  create.num_shape_specs = 1;
  create.memory = memory_;
  OK(Client_CreateBuffersForAsyncHostToDevice, create);
  auto retrieve = New<PJRT_AsyncHostToDeviceTransferManager_RetrieveBuffer_Args>();
  retrieve.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_RetrieveBuffer, retrieve);
  const auto buffer = Wrap(retrieve.buffer_out);
  const float data[] = {1, 2, 3, 4};
  auto transfer = New<PJRT_AsyncHostToDeviceTransferManager_TransferData_Args>();
  transfer.transfer_manager = create.transfer_manager;
  transfer.data = data;
  transfer.transfer_size = sizeof data;
  transfer.is_last_transfer = true;
  int answer = 0;
  buffer->ReadyEvent().OnReady([&](const hlo::Error*) {
    auto again = transfer;
    answer = CALL(AsyncHostToDeviceTransferManager_TransferData, again);
  });
  alarm(60);
  OK(AsyncHostToDeviceTransferManager_TransferData, transfer);
  alarm(0);
  Event(client_->plugin(), transfer.done_with_h2d_transfer).Await();
  EXPECT_EQ(answer, PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_EQ(buffer->ToLiteral(), Vector(1, 2, 3, 4));
  auto destroy = New<PJRT_AsyncHostToDeviceTransferManager_Destroy_Args>();
  destroy.transfer_manager = create.transfer_manager;
  OK(AsyncHostToDeviceTransferManager_Destroy, destroy);
}

TEST_F(PluginTest, DonationWithDependency) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto args = New<PJRT_Buffer_DonateWithControlDependency_Args>();
  args.buffer = x->handle();
  OK(Buffer_DonateWithControlDependency, args);
  auto y = Wrap(args.out_buffer);
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_FALSE(y->ReadyEvent().IsReady());
  PJRT_Buffer_DonateWithControlDependency_Callback_Args done{};
  done.struct_size = sizeof done;
  done.callback_data = args.callback_data;
  args.dependency_ready_callback(&done);
  EXPECT_EQ(y->ToLiteral(), Vector(1, 2, 3, 4));
}

TEST_F(PluginTest, RawCopyToALaterPlace) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto args = New<PJRT_Buffer_CopyRawToHostFuture_Args>();
  args.buffer = x->handle();
  args.offset = 4;
  args.transfer_size = 8;
  OK(Buffer_CopyRawToHostFuture, args);
  Event event(client_->plugin(), args.event);
  EXPECT_FALSE(event.IsReady());
  float two[2] = {};
  PJRT_Buffer_CopyRawToHostFuture_Callback_Args ready{};
  ready.struct_size = sizeof ready;
  ready.callback_data = args.callback_data;
  ready.dst = two;
  args.future_ready_callback(&ready);
  event.Await();
  EXPECT_EQ(two[1], 3.0f);
}

TEST_F(PluginTest, Bitcast) {
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const int64_t dims[] = {2, 2};
  auto args = New<PJRT_Buffer_Bitcast_Args>();
  args.buffer = x->handle();
  args.element_type = PJRT_Buffer_Type_S32;
  args.dims = dims;
  args.num_dims = 2;
  OK(Buffer_Bitcast, args);
  auto y = Wrap(args.out_buffer);
  EXPECT_EQ(y->shape(), hlo::Shape(hlo::ElementType::kS32, {2, 2}));
  EXPECT_EQ(y->ToLiteral().data<int32_t>()[0], 0x3f800000);
  args.num_dims = 1;
  EXPECT_EQ(CALL(Buffer_Bitcast, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(PluginTest, ViewOfDeviceBuffer) {
  alignas(64) static float data[] = {1, 2, 3, 4};
  static int released;
  released = 0;
  const int64_t dims[] = {4};
  for (int offset = 0; offset < 2; ++offset) {
    auto args = New<PJRT_Client_CreateViewOfDeviceBuffer_Args>();
    args.client = client_->handle();
    args.device_buffer_ptr = data + offset;
    args.dims = dims;
    args.num_dims = 1;
    args.element_type = PJRT_Buffer_Type_U8;
    args.memory = memory_;
    args.on_delete_callback = [](void*, void*) { ++released; };
    OK(Client_CreateViewOfDeviceBuffer, args);
    auto view = Wrap(args.buffer);
    EXPECT_EQ(view->ToLiteral().AsInt(3), offset == 0 ? 0x3f : 0x40);
    EXPECT_EQ(released, offset == 0 ? 0 : 2);  // what is not aligned is copied at once
  }
  EXPECT_EQ(released, 2);
}

TEST_F(PluginTest, ZeroCopy) {
  alignas(64) static float data[4096];
  HostBufferOptions options;
  options.semantics = HostBufferSemantics::kImmutableZeroCopy;
  std::atomic<bool> done = false;
  options.done = [&] { done = true; };
  auto buffer = client_->BufferFromHost(data, hlo::Shape(hlo::ElementType::kF32, {4096}),
                                        *client_->devices()[0], options);
  EXPECT_EQ(reinterpret_cast<const float*>(buffer->UnsafePointer()), data);
  EXPECT_FALSE(done);
  // Donated, it must not be written: it is the host's.
  auto module = MakeModule("add_one", [](hlo::Builder& b) {
    const hlo::Shape shape(hlo::ElementType::kF32, {4096});
    return std::vector<hlo::Value>{b.Add(b.Parameter(shape), b.Full(shape, 1.0))};
  });
  module->input_output_aliases.push_back({.output = 0, .parameter = 0});
  auto executable = client_->Compile(*module);
  const Buffer* arguments[] = {buffer.get()};
  ExecuteResult result = executable->Execute(arguments);
  result.done.Await();
  EXPECT_TRUE(buffer->IsDeleted());
  EXPECT_EQ(data[0], 0.0f);
  EXPECT_EQ(result.outputs[0]->ToLiteral().AsDouble(4095), 1.0);
  EXPECT_TRUE(done);
  // Its result is the device's, and is updated in place.
  const auto address = result.outputs[0]->UnsafePointer();
  const Buffer* again[] = {result.outputs[0].get()};
  ExecuteResult second = executable->Execute(again);
  EXPECT_EQ(second.outputs[0]->ToLiteral().AsDouble(0), 2.0);
  EXPECT_EQ(second.outputs[0]->UnsafePointer(), address);
}

// A caller that lends memory for results.
struct Lender {
  alignas(64) float memory[2][16] = {};
  int lent = 0, released = 0;
  bool refuses = false;
  std::map<size_t, const void*> places;
  PJRT_ResultMemory_Extension extension{};

  Lender() {
    extension.base = {sizeof extension, PJRT_Extension_Type_ResultMemory, nullptr};
    extension.memory = extension.execution = this;
    extension.allocate = [](void* self, size_t bytes) -> void* {
      auto& lender = *static_cast<Lender*>(self);
      EXPECT_EQ(bytes, 16U);
      return lender.refuses ? nullptr : lender.memory[lender.lent++];
    };
    extension.release = [](void* self, void* data, size_t bytes) {
      EXPECT_EQ(bytes, 16U);
      ++static_cast<Lender*>(self)->released;
    };
    extension.placed = [](void* self, size_t device, size_t result, const void* data) {
      EXPECT_EQ(device, 0U);
      static_cast<Lender*>(self)->places[result] = data;
    };
  }
};

TEST_F(PluginTest, ResultsLieInLentMemory) {
  const Device& device = *client_->devices()[0];
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  for (bool refuses : {false, true}) {
    Lender lender;
    lender.refuses = refuses;
    ExecuteOptions options;
    options.result_memory = &lender.extension;
    const int64_t keep[] = {0};
    options.non_donatable_inputs = keep;
    auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), device);
    const Buffer* arguments[] = {x.get(), x.get()};
    ExecuteResult first = executable->Execute(arguments, options);
    first.done.Await();
    EXPECT_EQ(lender.lent, refuses ? 0 : 2);
    const int64_t with = device.memory_stats().bytes_in_use;  // lent memory counts, too
    for (size_t i = 0; i < 2; ++i) {
      const auto* data = reinterpret_cast<float*>(first.outputs[i]->UnsafePointer());
      EXPECT_EQ(lender.places[i], data);
      EXPECT_EQ(data == lender.memory[i], !refuses);
    }
    EXPECT_EQ(first.outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
    // It may be written in place, and is given back when nothing uses it.
    const Buffer* sum[] = {first.outputs[0].get(), x.get()};
    ExecuteResult second = executable->Execute(sum);
    EXPECT_EQ(second.outputs[0]->ToLiteral(), Vector(3, 6, 9, 12));
    EXPECT_EQ(second.outputs[0]->UnsafePointer(), reinterpret_cast<uintptr_t>(lender.places[0]));
    EXPECT_EQ(lender.released, 0);
    first.outputs.clear();
    second.outputs.clear();
    EXPECT_EQ(lender.released, lender.lent);
    EXPECT_LE(device.memory_stats().bytes_in_use, with - 32);
  }
}

TEST_F(PluginTest, DonationLeavesExternalReferencesAlone) {
  auto executable = client_->Compile(*SumAndProduct(/*donate=*/true));
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto y = client_->BufferFromLiteral(Vector(1, 1, 1, 1), *client_->devices()[0]);
  Buffer::ExternalReference reference(*x);
  const Buffer* arguments[] = {x.get(), y.get()};
  EXPECT_EQ(executable->Execute(arguments).outputs[0]->ToLiteral(), Vector(2, 3, 4, 5));
  EXPECT_TRUE(x->IsDeleted());
  EXPECT_EQ(static_cast<const float*>(reference.data())[0], 1.0f);
}

TEST_F(PluginTest, MustAliasCannotBeKept) {
  auto module = SumAndProduct(/*donate=*/true);
  module->input_output_aliases[0].must_alias = true;
  auto executable = client_->Compile(*module);
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  auto y = client_->BufferFromLiteral(Vector(1, 1, 1, 1), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), y.get()};
  const int64_t keep[] = {0};
  ExecuteOptions options;
  options.non_donatable_inputs = keep;
  auto run = [&] { executable->Execute(arguments, options).done.Await(); };
  // MLIR's tf.aliasing_output does not tell may from must; where it does, this is an error.
  try {
    run();
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kInvalidArgument);
  }
  EXPECT_FALSE(x->IsDeleted());
}

// The statistics are the device's: threads of the engine may still make and free small buffers of
// earlier tests. So a large one is looked for, give or take half of it.
TEST_F(PluginTest, MemoryStatistics) {
  const Device& device = *client_->devices()[0];
  auto buffer =
      client_->CreateUninitializedBuffer(hlo::Shape(hlo::ElementType::kF32, {1 << 20}), device);
  const MemoryStats with = device.memory_stats();
  EXPECT_GE(with.bytes_in_use, 4 << 20);
  EXPECT_GE(with.peak_bytes_in_use.value(), with.bytes_in_use);
  buffer = nullptr;
  EXPECT_LE(device.memory_stats().bytes_in_use, with.bytes_in_use - (2 << 20));
}

TEST_F(PluginTest, ImpossibleSizes) {
  const int64_t huge[] = {int64_t{1} << 40, int64_t{1} << 40};
  auto args = New<PJRT_Client_CreateUninitializedBuffer_Args>();
  args.client = client_->handle();
  args.shape_dims = huge;
  args.shape_num_dims = 2;
  args.shape_element_type = PJRT_Buffer_Type_F32;
  args.memory = memory_;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_RESOURCE_EXHAUSTED);
  args.shape_num_dims = 1;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_RESOURCE_EXHAUSTED);
  const int64_t negative[] = {-1};
  args.shape_dims = negative;
  EXPECT_EQ(CALL(Client_CreateUninitializedBuffer, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

TEST_F(PluginTest, TopologyWithoutClient) {
  const Plugin& plugin = client_->plugin();
  auto topology = Topology::Create(plugin, "", {{"cpu_device_count", int64_t{3}}});
  EXPECT_EQ(topology->device_kinds().size(), 3u);
  auto copy = Topology::Deserialize(plugin, topology->Serialize());
  EXPECT_EQ(copy->device_kinds().size(), 3u);
  EXPECT_EQ(copy->platform_version(), client_->platform_version());
  EXPECT_THROW(Topology::Deserialize(plugin, "nonsense"), hlo::Error);
  auto program = copy->Compile(*SumAndProduct());
  EXPECT_EQ(program->output_shapes().size(), 2u);
  auto executable = client_->Load(*program);
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  EXPECT_EQ(executable->Execute(arguments).outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

// Compiled ahead of time, then loaded by who has the devices.
TEST_F(PluginTest, ExecutablesOfATopologyAreLoaded) {
  const Plugin& plugin = client_->plugin();
  auto topology = Topology::Create(plugin, "", {{"cpu_device_count", int64_t{2}}});
  auto executable = client_->DeserializeAndLoad(topology->Compile(*SumAndProduct())->Serialize());
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  EXPECT_EQ(executable->Execute(arguments).outputs[0]->ToLiteral(), Vector(2, 4, 6, 8));
}

TEST_F(PluginTest, ExecutablesOfAnotherBuildAreRefused) {
  const AnotherBuild build(OurEngine().path);
  const Plugin& plugin = Plugin::Load(build.path());
  const auto other = Client::Create(plugin);
  EXPECT_NE(other->platform_version(), client_->platform_version());
  const auto topology = Topology::Create(plugin, "", {{"cpu_device_count", int64_t{2}}});
  for (const std::string& bytes : {other->Compile(*SumAndProduct())->executable().Serialize(),
                                   topology->Compile(*SumAndProduct())->Serialize()}) {
    EXPECT_NE(other->DeserializeAndLoad(bytes), nullptr);
    try {
      client_->DeserializeAndLoad(bytes);
      ADD_FAILURE() << "loaded";
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kFailedPrecondition);
      EXPECT_NE(std::string(error.what()).find("compile the program again"), std::string::npos)
          << error.what();
    }
  }
}

TEST_F(PluginTest, BadCompileOptions) {
  const std::string code = hlo::WriteBytecode(*SumAndProduct());
  auto compile = [&](const std::string& options) {
    auto program = New<PJRT_Program>();
    program.code = const_cast<char*>(code.data());
    program.code_size = code.size();
    program.format = "mlir";
    program.format_size = 4;
    auto args = New<PJRT_Client_Compile_Args>();
    args.client = client_->handle();
    args.program = &program;
    args.compile_options = options.data();
    args.compile_options_size = options.size();
    const int result = CALL(Client_Compile, args);
    auto destroy = New<PJRT_LoadedExecutable_Destroy_Args>();
    destroy.executable = args.executable;
    EXPECT_EQ(CALL(LoadedExecutable_Destroy, destroy), 0);
    return result;
  };
  EXPECT_EQ(compile(""), 0);
  EXPECT_EQ(compile("\xff"), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(compile("\x1a\x7f"), PJRT_Error_Code_INVALID_ARGUMENT);
  EXPECT_EQ(compile(std::string("\x1a\x02\x20\x00", 4)), PJRT_Error_Code_INVALID_ARGUMENT);
  CompileOptions options;
  options.num_replicas = 3;  // two devices
  EXPECT_EQ(compile(options.Serialize()), PJRT_Error_Code_INVALID_ARGUMENT);
  options.num_replicas = 2;
  options.device_assignment = {1, 0};
  EXPECT_EQ(compile(options.Serialize()), 0);
  options.device_assignment = {1, 9};
  EXPECT_EQ(compile(options.Serialize()), PJRT_Error_Code_INVALID_ARGUMENT);
  options = {};
  options.overrides = {{"a", true}, {"b", 2.5}, {"c", int64_t{-3}}, {"d", "text"}};
  EXPECT_EQ(compile(options.Serialize()), 0);
}

TEST_F(PluginTest, Layouts) {
  const auto* layouts =
      client_->plugin().extension<PJRT_Layouts_Extension>(PJRT_Extension_Type_Layouts);
  ASSERT_NE(layouts, nullptr);
  auto x = client_->BufferFromLiteral(hlo::Literal(hlo::Shape(hlo::ElementType::kF32, {2, 3, 4})),
                                      *client_->devices()[0]);
  auto args = New<PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args>();
  args.buffer = x->handle();
  ASSERT_EQ(CodeOf(layouts->PJRT_Layouts_PJRT_Buffer_MemoryLayout(&args)), 0);
  auto text = New<PJRT_Layouts_MemoryLayout_Serialize_Args>();
  text.layout = args.layout;
  ASSERT_EQ(CodeOf(layouts->PJRT_Layouts_MemoryLayout_Serialize(&text)), 0);
  EXPECT_EQ(std::string(text.serialized_bytes, text.serialized_bytes_size), "{2,1,0}");
  text.serialized_layout_deleter(text.serialized_layout);
  auto destroy = New<PJRT_Layouts_MemoryLayout_Destroy_Args>();
  destroy.layout = args.layout;
  EXPECT_EQ(CodeOf(layouts->PJRT_Layouts_MemoryLayout_Destroy(&destroy)), 0);
}

TEST_F(PluginTest, HostLayouts) {
  auto x = client_->BufferFromLiteral(
      hlo::Literal::FromVector<int32_t>({0, 1, 2, 10, 11, 12}, {2, 3}), *client_->devices()[0]);
  const int64_t column_major[] = {0, 1};
  auto layout = New<PJRT_Buffer_MemoryLayout>();
  layout.type = PJRT_Buffer_MemoryLayout_Type_Tiled;
  layout.tiled = New<PJRT_Buffer_MemoryLayout_Tiled>();
  layout.tiled.minor_to_major = column_major;
  layout.tiled.minor_to_major_size = 2;
  int32_t columns[6] = {};
  auto args = New<PJRT_Buffer_ToHostBuffer_Args>();
  args.src = x->handle();
  args.host_layout = &layout;
  OK(Buffer_ToHostBuffer, args);  // asks for the size
  EXPECT_EQ(args.dst_size, 24u);
  args.dst = columns;
  OK(Buffer_ToHostBuffer, args);
  Event(client_->plugin(), args.event).Await();
  EXPECT_EQ(std::vector<int32_t>(columns, columns + 6),
            (std::vector<int32_t>{0, 10, 1, 11, 2, 12}));
  args.dst_size = 23;
  EXPECT_EQ(CALL(Buffer_ToHostBuffer, args), PJRT_Error_Code_INVALID_ARGUMENT);
}

// Framework processes fork workers after they have computed.
TEST_F(PluginTest, Fork) {
  auto executable = client_->Compile(*SumAndProduct());
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  executable->Execute(arguments).done.Await();
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    auto fresh = Client::Create(client_->plugin());
    auto y = fresh->BufferFromLiteral(Vector(1, 2, 3, 4), *fresh->devices()[0]);
    const Buffer* own[] = {y.get(), y.get()};
    const bool good = fresh->Compile(*SumAndProduct())->Execute(own).outputs[0]->ToLiteral() ==
                          Vector(2, 4, 6, 8) &&
                      executable->Execute(arguments).outputs[0]->ToLiteral() == Vector(2, 4, 6, 8);
    _exit(good ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// What completes it comes in the parent only.
TEST_F(PluginTest, AValueThatIsIncompleteAtAForkFailsInTheChild) {
  PJRT_FulfillAliasBufferCallback* fulfill = nullptr;
  const auto buffer = Promise(&fulfill);
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    try {
      buffer->ToLiteral();
      _exit(1);
    } catch (const hlo::Error& error) {
      _exit(error.code() == hlo::ErrorCode::kAborted ? 0 : 2);
    }
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  Fulfill(fulfill, nullptr, PJRT_Error_Code_CANCELLED, "given up");
}

TEST(Loading, WhatIsNoPlugin) {
  auto code = [](const std::string& path) {
    try {
      Plugin::Load(path);
    } catch (const hlo::Error& error) {
      EXPECT_NE(std::string(error.what()).find(path.substr(path.rfind('/'))), std::string::npos)
          << error.what();
      return error.code();
    }
    return hlo::ErrorCode{};
  };
  EXPECT_EQ(code("/no/such/plugin.so"), hlo::ErrorCode::kNotFound);
  EXPECT_EQ(code(SOURCE_DIRECTORY "/CMakeLists.txt"), hlo::ErrorCode::kInvalidArgument);
  Dl_info info;
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&std::fwrite), &info), 0);
  EXPECT_EQ(code(std::filesystem::canonical(info.dli_fname)), hlo::ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace pjrt
