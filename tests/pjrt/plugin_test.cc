// Our plugin through the bare C interface, of which a C++ client does not reach all: its table,
// clients, topologies, forks.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>

#include "hlo/bytecode.h"
#include "plugin_testing.h"

namespace pjrt {
namespace {

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
