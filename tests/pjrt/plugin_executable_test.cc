// Programs through the bare C interface: what is compiled, serialized, loaded and refused.
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>

#include "another_build.h"
#include "hlo/bytecode.h"
#include "hlo/module_identity.h"
#include "hlo/text_writer.h"
#include "pjrt/client/foreign_functions.h"
#include "pjrt/client/module_compile.h"
#include "pjrt/module_extension.h"
#include "plugin_testing.h"

namespace pjrt {
namespace {

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

// By threads of their own, beside which the environment may change.
TEST_F(PluginTest, TheFormOfProgramsIsReadWithTheFirstClient) {
  const std::string before = SerializeProgram(*SumAndProduct(), client_->plugin());
  setenv("TORCH_XLA_PROGRAM_FORMAT", "text", 1);
  const std::string after = SerializeProgram(*SumAndProduct(), client_->plugin());
  unsetenv("TORCH_XLA_PROGRAM_FORMAT");
  EXPECT_EQ(before, after);
}

TEST(ProgramForm, IsTheOneThatIsAskedFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has no client yet
  const auto text_is_sent = [] {
    setenv("TORCH_XLA_PROGRAM_FORMAT", "text", 1);
    const std::shared_ptr<Client> client = ClientOf(OurEngine());
    const std::string sent = SerializeProgram(*SumAndProduct(), client->plugin());
    std::exit(sent == hlo::WriteStablehloText(*SumAndProduct()) ? 0 : 1);
  };
  EXPECT_EXIT(text_is_sent(), testing::ExitedWithCode(0), "");
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

TEST_F(PluginTest, CompilesModules) {
  ASSERT_TRUE(TakesModules(client_->plugin()));
  const auto executable = CompileModule(*client_, SumAndProduct(), {});
  auto x = client_->BufferFromLiteral(Vector(1, 2, 3, 4), *client_->devices()[0]);
  const Buffer* arguments[] = {x.get(), x.get()};
  const auto outputs = executable->Execute(arguments).outputs;
  const auto expected = client_->Compile(*SumAndProduct())->Execute(arguments).outputs;
  ASSERT_EQ(outputs.size(), expected.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    EXPECT_EQ(outputs[i]->ToLiteral(), expected[i]->ToLiteral());
  }
}

TEST_F(PluginTest, CountsTheLoopsThatItCompiles) {
  const auto compile = [&] { CompileModule(*client_, SumAndProduct(), {}); };
  compile();
  const int64_t compiled = CompiledLoops(client_->plugin());
  EXPECT_GT(compiled, 0);
  compile();
  EXPECT_EQ(CompiledLoops(client_->plugin()), compiled);
}

TEST_F(PluginTest, WhatCameAsAModuleHasNoCode) {
  const auto executable = CompileModule(*client_, SumAndProduct(), {});
  const auto again = CompileModule(*client_, SumAndProduct(), {});
  EXPECT_NE(executable->executable().fingerprint(), again->executable().fingerprint());
  const auto expect_refused = [](const auto& ask) {
    try {
      ask();
      ADD_FAILURE() << "answered";
    } catch (const hlo::Error& error) {
      EXPECT_EQ(error.code(), hlo::ErrorCode::kUnimplemented);
      EXPECT_NE(std::string(error.what()).find("handed over as a module"), std::string::npos);
    }
  };
  expect_refused([&] { executable->executable().Serialize(); });
  expect_refused([&] { executable->executable().optimized_program(); });
}

TEST_F(PluginTest, ModulesOfAnotherBuildAreRefused) {
  const auto* modules =
      client_->plugin().extension<PJRT_Module_Extension>(PJRT_Extension_Type_Module);
  ASSERT_NE(modules, nullptr);
  EXPECT_STREQ(modules->identity, hlo::ModuleIdentity());
  const auto code_of = [&](std::string_view identity, hlo::Module* module) {
    auto args = New<PJRT_Module_Compile_Args>();
    args.client = client_->handle();
    args.module = module;
    args.identity = identity.data();
    args.identity_size = identity.size();
    return CodeOf(modules->compile(&args));
  };
  const auto module = SumAndProduct();
  EXPECT_EQ(code_of("another build", module.get()), PJRT_Error_Code_FAILED_PRECONDITION);
  EXPECT_EQ(code_of(hlo::ModuleIdentity(), nullptr), PJRT_Error_Code_INVALID_ARGUMENT);
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

// Whether a program of the client's that calls it compiles.
bool Knows(Client& client, const std::string& target) {
  const hlo::Shape shape(hlo::ElementType::kF32, {4});
  const auto module = MakeModule("calling", [&](hlo::Builder& b) {
    return std::vector<hlo::Value>{
        b.CustomCall({b.Parameter(shape)}, shape, {.target = target, .api_version = 4})};
  });
  try {
    return client.Compile(*module) != nullptr;
  } catch (const hlo::Error& error) {
    EXPECT_EQ(error.code(), hlo::ErrorCode::kUnimplemented) << error.what();
    return false;
  }
}

TEST_F(PluginTest, ForeignFunctionsAreEveryPlugins) {
  const auto function = reinterpret_cast<void*>(+[](void*) -> void* { return nullptr; });
  const AnotherBuild build(OurEngine().path);
  RegisterForeignFunction(client_->plugin(), "test.before", function, "cpu");
  const auto other = Client::Create(Plugin::Load(build.path()));
  RegisterForeignFunction(client_->plugin(), "test.after", function, "cpu");
  for (Client* client : {client_.get(), other.get()}) {
    EXPECT_TRUE(Knows(*client, "test.before"));
    EXPECT_TRUE(Knows(*client, "test.after"));
    EXPECT_FALSE(Knows(*client, "test.never"));
  }
  // What one of them has of its own is in nobody's way; the other one takes what is new.
  const auto another = reinterpret_cast<void*>(+[](void*) -> void* { std::abort(); });
  EXPECT_THROW(RegisterForeignFunction(other->plugin(), "test.before", another, "cpu"), hlo::Error);
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

}  // namespace
}  // namespace pjrt
